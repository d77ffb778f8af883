// What a spawner does when its processes have ended, or those of an earlier one: what it removes, keeps, and tells.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { ProcessId } from "../core/model/ids.ts";
import type { Clock } from "../ports/clock.ts";
import type { Mechanism, SpawnRequest } from "../ports/spawner.ts";
import { systemClock } from "../system/system-clock.ts";
import { OUTPUTS_MAX } from "./output/output-directory.ts";
import { type OpenSpawner, openSpawner, type SpawnerOptions } from "./spawner.ts";
import { type Ledger, openLedger } from "./tree/ledger.ts";
import type { Intent } from "./tree/ledger-entry.ts";
import { until } from "./tree/poll-until.ts";
import { type Identity, identityOf } from "./tree/proc.ts";
import { PROC_PROCESS_TABLE } from "./tree/proc-process-table.ts";
import type { ProcessTable } from "./tree/process-table.ts";

let home: string;
let dir: string;
let count = 0;

beforeAll(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), "belay-end-")));
});

beforeEach(() => {
  dir = mkdtempSync(join(home, "state-"));
});

afterAll(() => rmSync(home, { recursive: true, force: true }));

async function open(more: Partial<SpawnerOptions> = {}): Promise<OpenSpawner> {
  const spawner = await openSpawner({ dir, workspace: home, clock: systemClock, mechanism: "group", ...more });
  onTestFinished(() => spawner.close());
  return spawner;
}

function request(more: Partial<SpawnRequest> = {}): SpawnRequest {
  count += 1;
  return { id: `proc_end.${count}`, sessionId: "ses_test", command: "echo done", ...more };
}

function self(): Identity {
  const identity = identityOf(process.pid);
  if (identity === undefined) throw new Error("We are here.");
  return identity;
}

/** The ledger of a server that is dead: nobody of ours began with the machine. */
const deadLedger = (): Ledger =>
  openLedger({ dir: join(dir, "ledger"), clock: systemClock, owner: { ...self(), startTime: 1 } });

const intent = (id: ProcessId, mechanism: Mechanism): Intent => ({
  ...{ id, sessionId: "ses_test", cookie: `${id}:x`, mechanism },
});

describe("of a process that has ended", () => {
  test("all of a flood is heard, though the disk is slower than the pipe", async () => {
    const spawner = await open();
    let bytes = 0;
    const hear = (piece: Uint8Array): void => {
      bytes += piece.length;
    };
    const child = await spawner.spawn(request({ command: "head -c 8388608 /dev/zero", hear }));
    expect(await child.ended).toMatchObject({ code: 0 });
    expect([bytes, child.output.counts.bytes.stdout]).toEqual([8_388_608, 8_388_608]);
  });

  test("nothing is told to the operator if all went well", async () => {
    const notices: unknown[] = [];
    const spawner = await open({ onNotice: (text) => void notices.push(text) });
    await (await spawner.spawn(request())).ended;
    expect(notices).toEqual([]);
  });

  test("output that could not be kept harms nothing where nobody listens", async () => {
    const spawner = await open();
    const wish = request({ command: "read x", stdin: "open" });
    const child = await spawner.spawn(wish);
    rmSync(join(dir, "output", wish.id), { recursive: true });
    child.endInput();
    expect(await child.ended).toMatchObject({ code: 1, escaped: [] });
    expect(readdirSync(join(dir, "ledger"))).toEqual([]);
  });
});

describe("of a process that nobody could see the end of", () => {
  /** Fifty times as fast: what is waited for does not come. */
  const hasty: Clock = {
    now: () => systemClock.now(),
    elapsed: () => systemClock.elapsed() * 50,
    after: (ms, call, kind) => systemClock.after(ms / 50, call, kind),
  };

  async function unseen(more: Partial<SpawnerOptions>): Promise<{ readonly id: string; readonly escaped: number }> {
    let blind = false;
    const everybody: typeof PROC_PROCESS_TABLE.listProcesses = (meet) =>
      blind ? Promise.reject(new Error("The table cannot be read.")) : PROC_PROCESS_TABLE.listProcesses(meet);
    // On /proc nobody looks by way of what was given.
    const processTable: ProcessTable = { ...PROC_PROCESS_TABLE, kind: "ps", listProcesses: everybody };
    // What is found out about the machine takes its time.
    await (await openSpawner({ dir, workspace: home, clock: systemClock, mechanism: "group", processTable })).close();
    const spawner = await open({ clock: hasty, processTable, ...more });
    const wish = request();
    const child = await spawner.spawn(wish);
    blind = true;
    const { escaped } = await child.ended;
    expect(escaped).toHaveLength(1);
    return { id: wish.id, escaped: escaped[0] ?? 0 };
  }

  test("the entry is kept for the next start, and the operator is told who it is", async () => {
    const notices: string[] = [];
    const { id, escaped } = await unseen({ onNotice: (text) => void notices.push(text) });
    expect(notices).toEqual([`${id} has escaped: ${escaped} outlived every signal.`]);
    expect(readdirSync(join(dir, "ledger"))).toEqual([`${id}.json`]);
  });

  test("its end is told, also where nobody listens to notices", async () => {
    const { id } = await unseen({});
    expect(readdirSync(join(dir, "ledger"))).toEqual([`${id}.json`]);
  });
});

describe("of outputs", () => {
  test("the oldest goes when there are too many, unless its process goes on at another server", async () => {
    const names = Array.from({ length: OUTPUTS_MAX }, (_, at) => `proc_old.${at}` as const);
    for (const [at, name] of names.entries()) {
      const path = join(dir, "output", name);
      mkdirSync(path, { recursive: true });
      utimesSync(path, at, at);
    }
    // We are the other server too.
    openLedger({ dir: join(dir, "ledger"), clock: systemClock }).intend(intent("proc_old.0", "group"));
    const spawner = await open();
    const wish = request();
    await (await spawner.spawn(wish)).ended;
    const kept = (): readonly string[] => readdirSync(join(dir, "output"));
    await until(() => kept().length === OUTPUTS_MAX, { clock: systemClock, waitMs: 10_000 });
    const [first, , ...others] = names;
    expect(new Set(kept())).toEqual(new Set([first, ...others, wish.id]));
  });
});

describe("of what an earlier server has left", () => {
  test("a control group is ended and removed", async () => {
    const cgroup = join(dir, "belay.group");
    mkdirSync(cgroup);
    deadLedger().intend({ ...intent("proc_left.1", "cgroup"), cgroup });
    const { swept } = await open();
    expect(swept).toMatchObject([{ id: "proc_left.1", mechanism: "cgroup", sure: true }]);
    expect(existsSync(cgroup)).toBe(false);
  });

  test("an anchor is let finish before anybody else looks for its tree; others are not waited for", async () => {
    // Beyond every number a real process can have: whoever is real must be seen as it is, or the self-test fails.
    const nobody = 4_194_400;
    const child = (pid: number): Identity => ({ ...self(), pid, startTime: 2 });
    const ledger = deadLedger();
    for (const [at, mechanism] of (["anchor", "group", "anchor"] as const).entries()) {
      const id: ProcessId = `proc_left.${at}`;
      ledger.intend(intent(id, mechanism));
      // The last one's server has died before it could write down whom it had started.
      if (at < 2) ledger.spawned(id, child(nobody + at));
    }
    const asked: (number | string)[] = [];
    const isStill: typeof PROC_PROCESS_TABLE.isStill = (one) => {
      if (one.pid < nobody) return PROC_PROCESS_TABLE.isStill(one);
      asked.push(one.pid);
      return asked.length < 3;
    };
    const everybody: typeof PROC_PROCESS_TABLE.listProcesses = (meet) => {
      if (!asked.includes("everybody")) asked.push("everybody");
      return PROC_PROCESS_TABLE.listProcesses(meet);
    };
    const { swept } = await open({ processTable: { ...PROC_PROCESS_TABLE, isStill, listProcesses: everybody } });
    expect(asked.slice(0, 4)).toEqual([nobody, nobody, nobody, "everybody"]);
    expect(swept).toHaveLength(3);
  });
});
