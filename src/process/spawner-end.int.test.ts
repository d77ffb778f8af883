// How a spawner cleans up after its processes, or those of an earlier one: what it removes, keeps and reports.
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

/** The ledger of a dead server: no process of ours has this start time. */
const deadLedger = (): Ledger =>
  openLedger({ dir: join(dir, "ledger"), clock: systemClock, owner: { ...self(), startTime: 1 } });

const intent = (id: ProcessId, mechanism: Mechanism): Intent => ({
  ...{ id, sessionId: "ses_test", cookie: `${id}:x`, mechanism },
});

describe("after the end of a process", () => {
  test("all of its output was passed on, although the disk is slower than the pipe", async () => {
    const spawner = await open();
    let bytes = 0;
    const hear = (piece: Uint8Array): void => {
      bytes += piece.length;
    };
    const child = await spawner.spawn(request({ command: "head -c 8388608 /dev/zero", hear }));
    expect(await child.ended).toMatchObject({ code: 0 });
    expect([bytes, child.output.counts.bytes.stdout]).toEqual([8_388_608, 8_388_608]);
  });

  test("the operator gets no notice if it went well", async () => {
    const notices: unknown[] = [];
    const spawner = await open({ onNotice: (text) => void notices.push(text) });
    await (await spawner.spawn(request())).ended;
    expect(notices).toEqual([]);
  });

  test("output that could not be kept is no problem without a notice handler", async () => {
    const spawner = await open();
    const wanted = request({ command: "read x", stdin: "open" });
    const child = await spawner.spawn(wanted);
    rmSync(join(dir, "output", wanted.id), { recursive: true });
    child.endInput();
    expect(await child.ended).toMatchObject({ code: 1, escaped: [] });
    expect(readdirSync(join(dir, "ledger"))).toEqual([]);
  });
});

describe("after a process whose end could not be verified", () => {
  /** Fifty times as fast, because the awaited event never comes. */
  const hasty: Clock = {
    now: () => systemClock.now(),
    elapsed: () => systemClock.elapsed() * 50,
    after: (ms, call, kind) => systemClock.after(ms / 50, call, kind),
  };

  async function unseen(more: Partial<SpawnerOptions>): Promise<{ readonly id: string; readonly escaped: number }> {
    let blind = false;
    const listProcesses: typeof PROC_PROCESS_TABLE.listProcesses = (meet) =>
      blind ? Promise.reject(new Error("The table cannot be read.")) : PROC_PROCESS_TABLE.listProcesses(meet);
    // With kind "proc" the given table would not be used for scans.
    const processTable: ProcessTable = { ...PROC_PROCESS_TABLE, kind: "ps", listProcesses };
    // Tests of the machine use the normal clock.
    await (await openSpawner({ dir, workspace: home, clock: systemClock, mechanism: "group", processTable })).close();
    const spawner = await open({ clock: hasty, processTable, ...more });
    const wanted = request();
    const child = await spawner.spawn(wanted);
    blind = true;
    const { escaped } = await child.ended;
    expect(escaped).toHaveLength(1);
    return { id: wanted.id, escaped: escaped[0] ?? 0 };
  }

  test("the entry is kept for the next start, and the operator gets its pid", async () => {
    const notices: string[] = [];
    const { id, escaped } = await unseen({ onNotice: (text) => void notices.push(text) });
    expect(notices).toEqual([`${id} has escaped: ${escaped} survived every signal.`]);
    expect(readdirSync(join(dir, "ledger"))).toEqual([`${id}.json`]);
  });

  test("its end is reported, even without a notice handler", async () => {
    const { id } = await unseen({});
    expect(readdirSync(join(dir, "ledger"))).toEqual([`${id}.json`]);
  });
});

describe("among kept outputs", () => {
  test("the oldest is removed when there are too many, unless its process runs in another server", async () => {
    const names = Array.from({ length: OUTPUTS_MAX }, (_, at) => `proc_old.${at}` as const);
    for (const [at, name] of names.entries()) {
      const path = join(dir, "output", name);
      mkdirSync(path, { recursive: true });
      utimesSync(path, at, at);
    }
    // We act as the other server too.
    openLedger({ dir: join(dir, "ledger"), clock: systemClock }).intend(intent("proc_old.0", "group"));
    const spawner = await open();
    const wanted = request();
    await (await spawner.spawn(wanted)).ended;
    const kept = (): readonly string[] => readdirSync(join(dir, "output"));
    await until(() => kept().length === OUTPUTS_MAX, { clock: systemClock, waitMs: 10_000 });
    const [first, , ...others] = names;
    expect(new Set(kept())).toEqual(new Set([first, ...others, wanted.id]));
  });
});

describe("among the trees of an earlier server", () => {
  test("a control group is ended and removed", async () => {
    const cgroup = join(dir, "belay.group");
    mkdirSync(cgroup);
    deadLedger().intend({ ...intent("proc_left.1", "cgroup"), cgroup });
    const { swept } = await open();
    expect(swept).toMatchObject([{ id: "proc_left.1", mechanism: "cgroup", sure: true }]);
    expect(existsSync(cgroup)).toBe(false);
  });

  test("an anchor may finish before its tree is searched; other trees are not waited for", async () => {
    // Beyond every real pid: real processes must be reported correctly, or the self-test fails.
    const unused = 4_194_400;
    const child = (pid: number): Identity => ({ ...self(), pid, startTime: 2 });
    const ledger = deadLedger();
    for (const [at, mechanism] of (["anchor", "group", "anchor"] as const).entries()) {
      const id: ProcessId = `proc_left.${at}`;
      ledger.intend(intent(id, mechanism));
      // The last one's server died before it recorded its child.
      if (at < 2) ledger.spawned(id, child(unused + at));
    }
    const calls: (number | string)[] = [];
    const isStill: typeof PROC_PROCESS_TABLE.isStill = (one) => {
      if (one.pid < unused) return PROC_PROCESS_TABLE.isStill(one);
      calls.push(one.pid);
      return calls.length < 3;
    };
    const listProcesses: typeof PROC_PROCESS_TABLE.listProcesses = (meet) => {
      if (!calls.includes("scan")) calls.push("scan");
      return PROC_PROCESS_TABLE.listProcesses(meet);
    };
    const { swept } = await open({ processTable: { ...PROC_PROCESS_TABLE, isStill, listProcesses } });
    expect(calls.slice(0, 4)).toEqual([unused, unused, unused, "scan"]);
    expect(swept).toHaveLength(3);
  });
});
