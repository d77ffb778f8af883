import { describe, expect, test } from "vitest";
import { manualClock } from "../../testing/manual-clock.ts";
import type { Leader } from "../containment/containment.ts";
import { MarkedTree } from "./marked-tree.ts";
import type { Identity, Seen } from "./proc.ts";
import { PROC_PROCESS_TABLE } from "./proc-process-table.ts";
import type { ProcessTable } from "./process-table.ts";
import { SharedScan } from "./shared-scan.ts";

const COOKIE = "proc_marked.1:x";
const LEADER: Identity = { pid: 5_001_000, startTime: 7, bootId: "boot" };
const LINK = "pipe:[99]";

type Made = Partial<Seen> & { readonly pid: number };

/** A process, unrelated unless something marks it. No pid here can be one of this machine, so of this program. */
const processOf = (made: Made): Seen => ({
  ...{ state: "S", parent: 1, group: made.pid, session: made.pid, startTime: 7, threads: 1, kernel: false },
  ...{ identity: { pid: made.pid, startTime: 7, bootId: "boot" }, cookies: [], blank: false },
  ...made,
});

/** A machine with these processes. One that is killed is gone. */
function machine(made: readonly Made[], more: Partial<ProcessTable> & { readonly released?: boolean } = {}) {
  const all = new Map(made.map((one) => [one.pid, processOf(one)]));
  const killed: number[] = [];
  const clock = manualClock();
  const processTable: ProcessTable = {
    ...PROC_PROCESS_TABLE,
    openFile: (pid, fd) => (pid === LEADER.pid && fd === 5 ? LINK : undefined),
    hasOpen: () => false,
    statOf: (pid) => all.get(pid) ?? "gone",
    pids: () => [...all.keys()],
    identityOf: (pid) => all.get(pid)?.identity,
    isStill: ({ pid }) => all.has(pid),
    means: () => ({
      presenceOf: ({ pid }) => (all.has(pid) ? "there" : "gone"),
      pinsGroup: () => "unknown",
      kill: (pid) => {
        killed.push(pid);
        all.delete(pid);
      },
      ...{ pid: process.pid, group: () => undefined },
    }),
    ...more,
  };
  const leader: Leader = {
    ...{ identity: LEADER, kill: () => undefined, write: () => undefined, exit: undefined },
    released: more.released ?? true,
  };
  const sharedScan = new SharedScan(async () => [...all.values()]);
  const tree = new MarkedTree(leader, COOKIE, { sharedScan, clock, processTable });
  return { tree, all, killed, clock };
}

const pidsOf = (found: readonly Identity[]): readonly number[] =>
  found.map(({ pid }) => pid).toSorted((one, other) => one - other);

const leader: Made = { pid: LEADER.pid };

describe("the members of a marked tree", () => {
  test("are the processes with its cookie, group or session, and their descendants", async () => {
    const { tree } = machine([
      leader,
      { pid: 5_000_011, cookies: ["proc_outer.1:x", COOKIE] },
      { pid: 5_000_012, group: LEADER.pid },
      { pid: 5_000_013, session: LEADER.pid },
      { pid: 5_000_014, parent: 5_000_011 },
      { pid: 5_000_015, parent: 5_000_014 },
      { pid: 5_000_020 },
      { pid: 5_000_021, cookies: [`${COOKIE}y`] },
      { pid: 5_000_022, parent: 5_000_020 },
    ]);
    expect(pidsOf(await tree.find())).toEqual([5_000_011, 5_000_012, 5_000_013, 5_000_014, 5_000_015, LEADER.pid]);
  });

  test("never include this program or its children, even if it carries the cookie itself", async () => {
    const { tree } = machine([
      { pid: process.pid, cookies: [COOKIE] },
      { pid: 5_000_031, parent: process.pid },
    ]);
    expect(await tree.find()).toEqual([]);
  });

  test("are not recognized by the leader's number once another process has it, or if it cannot be read", async () => {
    const made = [{ pid: 5_000_012, group: LEADER.pid, session: LEADER.pid }];
    expect(pidsOf(await machine(made).tree.find())).toEqual([5_000_012]);
    expect(await machine([{ ...leader, startTime: 8 }, ...made]).tree.find()).toEqual([]);
    expect(await machine(made, { statOf: () => "unknown" }).tree.find()).toEqual([]);
  });

  test("are found by the liveness pipe if they have shed all other marks, newest first", async () => {
    const holding = new Set([5_000_040, 5_000_500]);
    const others = Array.from({ length: 40 }, (_, index) => ({ pid: 5_000_100 + index }));
    const made = [{ pid: 5_000_040 }, ...others, { pid: 5_000_500 }, { pid: process.pid }];
    const hasOpen = (pid: number, files: readonly string[]): boolean => holding.has(pid) && files.includes(LINK);
    const { tree } = machine(made, { released: false, hasOpen });
    expect(tree.livenessLink).toBe(LINK);
    expect(pidsOf(await tree.find())).toEqual([5_000_500]);
    holding.delete(5_000_500);
    expect(pidsOf(await tree.find())).toEqual([5_000_040]);
    holding.add(process.pid).delete(5_000_040);
    // The pipe is open, but its holder cannot be found: no process is reported gone.
    await expect(tree.find()).rejects.toThrow("holds the liveness pipe");
  });

  test("are none once the pipe is released, or without one; without open files `find` rejects", async () => {
    const hasOpen = (): boolean => true;
    expect(await machine([{ pid: 5_000_040 }], { hasOpen }).tree.find()).toEqual([]);
    const without = { openFile: () => undefined, released: false };
    expect(await machine([{ pid: 5_000_040 }], { ...without, hasOpen }).tree.find()).toEqual([]);
    await expect(machine([{ pid: 5_000_040 }], { ...without, kind: "ps" }).tree.find()).rejects.toThrow(
      "liveness pipe",
    );
    expect(await machine([{ pid: 5_000_040 }], { ...without, kind: "ps", released: true }).tree.find()).toEqual([]);
  });
});

describe("`end` of a marked tree", () => {
  test("ends all members, and counts those known only by cookie or descent", async () => {
    const { tree, killed, clock, all } = machine([
      leader,
      { pid: 5_000_011, cookies: [COOKIE] },
      { pid: 5_000_012, group: LEADER.pid, cookies: [COOKIE] },
      { pid: 5_000_013, session: LEADER.pid },
      { pid: 5_000_014, parent: 5_000_012 },
      { pid: 5_000_020 },
    ]);
    const ended = tree.end(500);
    await clock.advance(1_000);
    expect(await ended).toEqual({ killed: 2, left: [] });
    expect(killed.toSorted((one, other) => one - other)).toEqual([
      5_000_011,
      5_000_012,
      5_000_013,
      5_000_014,
      LEADER.pid,
    ]);
    expect([...all.keys()]).toEqual([5_000_020]);
  });

  test("counts members that were found by the pipe alone", async () => {
    const { tree, clock, all } = machine([{ pid: 5_000_040 }], { released: false, hasOpen: (pid) => all.has(pid) });
    const ended = tree.end(500);
    await clock.advance(20);
    expect([...all.keys()]).toEqual([]);
    await clock.advance(5_000);
    // The pipe was never released here, so the end is not proven.
    expect(await ended).toEqual({ killed: 1, left: [LEADER.pid] });
  });

  test("reports the processes that survive, and returns at its deadline", async () => {
    const means = () => ({ ...PROC_PROCESS_TABLE.means(), presenceOf: () => "unknown" as const });
    const { tree, clock } = machine([leader, { pid: 5_000_012, group: LEADER.pid }], { means });
    const ended = tree.end(-100);
    await clock.advance(1_499);
    expect(await Promise.race([ended, Promise.resolve("pending")])).toBe("pending");
    await clock.advance(1);
    expect(await ended).toEqual({ killed: 0, left: [LEADER.pid, 5_000_012] });
  });

  test("scans as often as requested", async () => {
    const { tree, clock } = machine([]);
    expect(await tree.end(500, 1)).toEqual({ killed: 0, left: [] });
    const twice = tree.end(500);
    expect(await Promise.race([twice, Promise.resolve("pending")])).toBe("pending");
    await clock.advance(1_000);
    expect(await twice).toEqual({ killed: 0, left: [] });
  });

  test("that could not scan reports the leader as left", async () => {
    const { tree, clock } = machine([], { released: false });
    const ended = tree.end(500);
    await clock.advance(2_000);
    expect(await ended).toEqual({ killed: 0, left: [LEADER.pid] });
  });
});

describe("companions", () => {
  const made: readonly Made[] = [
    leader,
    { pid: 5_000_011, group: LEADER.pid },
    { pid: 5_000_012, group: LEADER.pid, session: LEADER.pid },
    { pid: 5_000_013, session: LEADER.pid },
    { pid: 5_000_016, group: LEADER.pid },
    { pid: 5_000_014, group: LEADER.pid, state: "Z" },
    { pid: 5_000_015, group: LEADER.pid, state: "X" },
    { pid: 5_000_020 },
  ];

  test("are the living processes of the group and session, except leader and command", () => {
    const { tree } = machine(made, { released: false });
    expect(tree.companions(5_000_011)).toEqual([
      { pid: 5_000_012, signalled: true },
      { pid: 5_000_013, signalled: false },
      { pid: 5_000_016, signalled: true },
    ]);
  });

  test("are none once the pipe is released, or another process has the leader's number", () => {
    expect(machine(made).tree.companions(5_000_011)).toEqual([]);
    const other = made.with(0, { ...leader, startTime: 8 });
    expect(machine(other, { released: false }).tree.companions(5_000_011)).toEqual([]);
  });

  test("come from the last scan where a scan takes time, and the next one is started", () => {
    let scans = 0;
    const refresh = (): Promise<void> => {
      scans += 1;
      return Promise.reject(new Error("no ps"));
    };
    const { tree } = machine(made, { released: false, refresh });
    expect(tree.companions(5_000_011)).toHaveLength(3);
    expect(scans).toBe(1);
  });
});
