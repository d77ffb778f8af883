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

/** Somebody, a stranger unless something marks them. No pid here can be one of this machine, so of this program. */
const somebody = (made: Made): Seen => ({
  ...{ state: "S", parent: 1, group: made.pid, session: made.pid, startTime: 7, threads: 1, kernel: false },
  ...{ identity: { pid: made.pid, startTime: 7, bootId: "boot" }, cookies: [], blank: false },
  ...made,
});

/** A machine with these on it. Whoever is killed is gone. */
function machine(made: readonly Made[], more: Partial<ProcessTable> & { readonly released?: boolean } = {}) {
  const all = new Map(made.map((one) => [one.pid, somebody(one)]));
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
    ...{ identity: LEADER, kill: () => undefined, tell: () => undefined, exit: undefined },
    released: more.released ?? true,
  };
  const sharedScan = new SharedScan(async () => [...all.values()]);
  const tree = new MarkedTree(leader, COOKIE, { sharedScan, clock, processTable });
  return { tree, all, killed, clock };
}

const pidsOf = (found: readonly Identity[]): readonly number[] =>
  found.map(({ pid }) => pid).toSorted((one, other) => one - other);

const leader: Made = { pid: LEADER.pid };

describe("who belongs to a marked tree", () => {
  test("is whoever carries its cookie, is in its group or session, or is below one of these", async () => {
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

  test("is never this program, nor what it has started, also if it carries the cookie itself", async () => {
    const { tree } = machine([
      { pid: process.pid, cookies: [COOKIE] },
      { pid: 5_000_031, parent: process.pid },
    ]);
    expect(await tree.find()).toEqual([]);
  });

  test("is not told by the number of the leader once somebody else has it, or nobody can tell who", async () => {
    const made = [{ pid: 5_000_012, group: LEADER.pid, session: LEADER.pid }];
    expect(pidsOf(await machine(made).tree.find())).toEqual([5_000_012]);
    expect(await machine([{ ...leader, startTime: 8 }, ...made]).tree.find()).toEqual([]);
    expect(await machine(made, { statOf: () => "unknown" }).tree.find()).toEqual([]);
  });

  test("is found by the liveness pipe, who has shed everything else, the newest first", async () => {
    const holding = new Set([5_000_040, 5_000_500]);
    const crowd = Array.from({ length: 40 }, (_, index) => ({ pid: 5_000_100 + index }));
    const made = [{ pid: 5_000_040 }, ...crowd, { pid: 5_000_500 }, { pid: process.pid }];
    const hasOpen = (pid: number, files: readonly string[]): boolean => holding.has(pid) && files.includes(LINK);
    const { tree } = machine(made, { released: false, hasOpen });
    expect(tree.livenessLink).toBe(LINK);
    expect(pidsOf(await tree.find())).toEqual([5_000_500]);
    holding.delete(5_000_500);
    expect(pidsOf(await tree.find())).toEqual([5_000_040]);
    holding.add(process.pid).delete(5_000_040);
    // It is open somewhere, and nobody is seen who has it: nobody is said to be gone.
    await expect(tree.find()).rejects.toThrow("Somebody holds the liveness pipe");
  });

  test("is nobody once the pipe is released, or without one; where files are not seen, nobody knows", async () => {
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

describe("the end of a marked tree", () => {
  test("is everybody's, and those are counted whom only their marks have told from strangers", async () => {
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

  test("counts those who were found by the pipe alone", async () => {
    const { tree, clock, all } = machine([{ pid: 5_000_040 }], { released: false, hasOpen: (pid) => all.has(pid) });
    const ended = tree.end(500);
    await clock.advance(20);
    expect([...all.keys()]).toEqual([]);
    await clock.advance(5_000);
    // The pipe was never released here, so nobody is sure.
    expect(await ended).toEqual({ killed: 1, left: [LEADER.pid] });
  });

  test("names those who outlive it, and gives up in time", async () => {
    const means = () => ({ ...PROC_PROCESS_TABLE.means(), presenceOf: () => "unknown" as const });
    const { tree, clock } = machine([leader, { pid: 5_000_012, group: LEADER.pid }], { means });
    const ended = tree.end(-100);
    await clock.advance(1_499);
    expect(await Promise.race([ended, Promise.resolve("goes on")])).toBe("goes on");
    await clock.advance(1);
    expect(await ended).toEqual({ killed: 0, left: [LEADER.pid, 5_000_012] });
  });

  test("takes as many looks as are asked for", async () => {
    const { tree, clock } = machine([]);
    expect(await tree.end(500, 1)).toEqual({ killed: 0, left: [] });
    const twice = tree.end(500);
    expect(await Promise.race([twice, Promise.resolve("goes on")])).toBe("goes on");
    await clock.advance(1_000);
    expect(await twice).toEqual({ killed: 0, left: [] });
  });

  test("that nobody could look at is not taken for one", async () => {
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

  test("are the living of the group and the session, besides the leader and the command", () => {
    const { tree } = machine(made, { released: false });
    expect(tree.companions(5_000_011)).toEqual([
      { pid: 5_000_012, asked: true },
      { pid: 5_000_013, asked: false },
      { pid: 5_000_016, asked: true },
    ]);
  });

  test("are none once the pipe is released, or the leader's number is somebody else's", () => {
    expect(machine(made).tree.companions(5_000_011)).toEqual([]);
    const other = made.with(0, { ...leader, startTime: 8 });
    expect(machine(other, { released: false }).tree.companions(5_000_011)).toEqual([]);
  });

  test("are those of the last look where a look takes time, and the next one is begun", () => {
    let looks = 0;
    const look = (): Promise<void> => {
      looks += 1;
      return Promise.reject(new Error("no ps"));
    };
    const { tree } = machine(made, { released: false, look });
    expect(tree.companions(5_000_011)).toHaveLength(3);
    expect(looks).toBe(1);
  });
});
