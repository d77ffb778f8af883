// A store that no server has open, for whoever looks at it or asks something of it. Nothing in it is taken up: what a
// cancel records here is carried out by the server that opens the file next.
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
  // Opening makes a file where there is none, and whoever mistypes a name should not get an empty one.
  if (!existsSync(file)) {
    throw new ControlError("not_found", `There is no file ${file}.`, {
      hint: "Give the file that a server was opened with: --store FILE.",
    });
  }
  const store = await openSqliteStore({ file });
  try {
    return await openBelay({ store: undriven(store), agent: noProcesses, processes: { spawner: keptOutput(file) } });
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Every lane is somebody else's to drive, as far as this program is concerned. */
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

/** Whoever opens the file next. */
const NEXT: WorkerId = "wrk_next";

/** Nothing is driven here, so no turn is ever asked for. */
const noProcesses: Agent = () => {
  throw new ControlError("internal", "A turn was asked for in a store that is only looked at.");
};

/** What processes have said is read from beside the store. None is started, and none that is left is touched. */
function keptOutput(file: string): Spawner {
  const dir = join(resolve(`${file}.processes`), "output");
  return {
    tier: "group",
    mechanism: "group",
    spawn: async () => {
      throw new ControlError("not_started", "No processes are started in a store that is only looked at.");
    },
    output: (id) => openOutput(join(dir, id)),
    // Nothing is live here. A file that was made by hand may have other ids in it.
    discard: async (ids) => {
      for (const id of ids.filter(isProcessId)) await rm(join(dir, id), { recursive: true, force: true });
    },
    close: async () => {},
  };
}
