// A Belay on a store that no server has open, for commands that read it or record a request in it. It drives no run:
// the server that opens the file next carries out a cancel that is recorded here.
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { ControlError } from "../../core/errors.ts";
import { isProcessId, type WorkerId } from "../../core/model/ids.ts";
import type { Agent } from "../../ports/agent.ts";
import type { Spawner } from "../../ports/spawner.ts";
import type { Store } from "../../ports/store.ts";
import { openOutput } from "../../process/output/saved-output.ts";
import { type Belay, openBelay } from "../../sdk/belay.ts";
import { openSqliteStore } from "../../store/sqlite/sqlite-store.ts";

export async function openOfflineStore(file: string): Promise<Belay> {
  // Opening creates a missing file, and a mistyped name should not create an empty store.
  if (!existsSync(file)) {
    throw new ControlError("not_found", `There is no file ${file}.`, {
      hint: "Give the file that a server was opened with: --store FILE.",
    });
  }
  const store = await openSqliteStore({ file });
  try {
    return await openBelay({ store: undriven(store), agent: noProcesses, processes: { spawner: savedOutput(file) } });
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** The store with every lease refused, so that this program drives no lane. */
function undriven(store: Store): Store {
  return {
    workers: "one",
    append: (batch) => store.append(batch),
    load: (session) => store.load(session),
    read: (session, page) => store.read(session, page),
    grown: (session, after, signal) => store.grown(session, after, signal),
    run: (by) => store.run(by),
    call: (id) => store.call(id),
    process: (id) => store.process(id),
    processes: (session, page) => store.processes(session, page),
    runs: (session, page) => store.runs(session, page),
    session: (id) => store.session(id),
    sessions: (page) => store.sessions(page),
    ids: (asked) => store.ids(asked),
    unattended: (limit) => store.unattended(limit),
    claim: () => Promise.resolve({ kind: "held", by: NEXT, forMs: 0 }),
    renew: () => Promise.resolve([]),
    release: () => Promise.resolve(),
    trim: (session, before) => store.trim(session, before),
    ...(store.upkeep === undefined ? {} : { upkeep: store.upkeep }),
    close: () => store.close(),
  };
}

/** Stands for the worker that opens the file next. */
const NEXT: WorkerId = "wrk_next";

/** No lane is driven here, so the agent is never called. */
const noProcesses: Agent = () => {
  throw new ControlError("internal", "A turn was asked for in a store that is only looked at.");
};

/** Reads the saved output of processes from beside the store. Starts no process, and signals none. */
function savedOutput(file: string): Spawner {
  const dir = join(resolve(`${file}.processes`), "output");
  return {
    tier: "group",
    mechanism: "group",
    spawn: async () => {
      throw new ControlError("not_started", "No processes are started in a store that is only looked at.");
    },
    output: (id) => openOutput(join(dir, id)),
    // No process is live here. A file that was edited by hand may contain other ids.
    discard: async (ids) => {
      for (const id of ids.filter(isProcessId)) await rm(join(dir, id), { recursive: true, force: true });
    },
    close: async () => {},
  };
}
