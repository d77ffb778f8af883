import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../system/system-clock.ts";
import { manualClock } from "../../testing/manual-clock.ts";
import { COOKIE_NAME, makeCookie } from "../launch/environment.ts";
import { EMPTY_SCANS, SCAN_PAUSE_MS, STORM_ROUNDS } from "../limits.ts";
import { type EndAllOptions, endAll } from "./kill-scan.ts";
import { carrying, type Identity, PROC } from "./proc.ts";

const one = (pid: number): Identity => ({ pid, startTime: pid, bootId: "boot" });

/** A simulated process table, and the signals it received. */
function table(...pids: readonly number[]) {
  const alive = new Set(pids);
  const sent: string[] = [];
  const clock = manualClock();
  let scans = 0;
  const ending: EndAllOptions = {
    find: async () => {
      scans += 1;
      return [...alive].map(one);
    },
    clock,
    send: ({ pid }, signal) => {
      if (!alive.has(pid)) return "gone";
      sent.push(`${signal} ${pid}`);
      if (signal === "SIGKILL") alive.delete(pid);
      return "sent";
    },
    isStill: ({ pid }) => alive.has(pid),
  };
  return { alive, sent, clock, ending, scans: () => scans };
}

describe("rounds", () => {
  test("finds no process in EMPTY_SCANS scans, SCAN_PAUSE_MS apart, and is sure", async () => {
    const { ending, clock, scans } = table();
    const ended = endAll(ending);
    await clock.advance(SCAN_PAUSE_MS * (EMPTY_SCANS - 1) - 1);
    expect(scans()).toBe(EMPTY_SCANS - 1);
    await clock.advance(1);
    expect(await ended).toEqual({ killed: [], left: [], sure: true });
    expect(clock.pending).toEqual([]);
  });

  test("kills every process found, and those that they have forked meanwhile", async () => {
    const { ending, clock, alive, sent } = table(10, 11);
    const ended = endAll({
      ...ending,
      send: (identity, signal) => {
        if (identity.pid === 11 && alive.has(11)) alive.add(12);
        return ending.send?.(identity, signal) ?? "gone";
      },
    });
    await clock.advance(200);
    expect(await ended).toEqual({ killed: [one(10), one(11), one(12)], left: [], sure: true });
    expect(sent).toEqual(["SIGKILL 10", "SIGKILL 11", "SIGKILL 12"]);
  });

  test("a scan that finds a process restarts the count of empty scans", async () => {
    const { ending, clock, alive } = table();
    const ended = endAll(ending);
    await clock.advance(SCAN_PAUSE_MS - 1);
    alive.add(10);
    await clock.advance(200);
    expect(await ended).toEqual({ killed: [one(10)], left: [], sure: true });
  });

  test("a deadline during a pause ends without another scan or timer", async () => {
    const { ending, clock, scans } = table();
    const ended = endAll({ ...ending, pauseMs: 1_000, deadlineMs: 10 });
    await clock.advance(10);
    expect(await ended).toEqual({ killed: [], left: [], sure: false });
    expect([scans(), clock.pending]).toEqual([1, []]);
  });

  test("a scan that fails sends no signal", async () => {
    const { ending, clock } = table();
    const to: unknown[] = [];
    const ended = endAll({
      ...ending,
      find: () => Promise.reject(new Error("out of files")),
      send: (identity) => {
        to.push(identity);
        return "sent";
      },
      deadlineMs: 100,
    });
    await clock.advance(100);
    expect(await ended).toEqual({ killed: [], left: [], sure: false });
    expect(to).toEqual([]);
  });

  test("a frozen process that exits by itself does not count as killed", async () => {
    const { ending, clock, alive, sent } = table(10);
    const ended = endAll({ ...ending, freezeFirst: true });
    await clock.advance(0);
    expect(sent).toEqual(["SIGSTOP 10"]);
    alive.delete(10);
    await clock.advance(200);
    expect(await ended).toEqual({ killed: [], left: [], sure: true });
  });

  test("a process that cannot be killed is reported as left at the deadline", {
    meta: { id: "G19/unkillable-process-reported" },
  }, async () => {
    const { ending, clock } = table(10);
    const ended = endAll({ ...ending, send: () => "refused", deadlineMs: 100 });
    await clock.advance(99);
    expect(clock.pending).not.toEqual([]);
    await clock.advance(1);
    expect(await ended).toEqual({ killed: [], left: [one(10)], sure: false });
    expect(clock.pending).toEqual([]);
  });

  test("a process that sheds its marks after it was found is still reported", async () => {
    const { ending, clock, alive } = table(10);
    let scans = 0;
    const stubborn = endAll({
      ...ending,
      find: async () => (scans++ === 0 ? [one(10)] : []),
      send: () => "sent",
      deadlineMs: 100,
    });
    await clock.advance(100);
    expect(await stubborn).toEqual({ killed: [], left: [one(10)], sure: false });
    expect(alive).toEqual(new Set([10]));
  });

  test("a scan that fails does not count as empty", async () => {
    const { ending, clock } = table();
    let scans = 0;
    const find = async () => {
      scans += 1;
      if (scans === 2) throw new Error("EMFILE");
      return [];
    };
    const ended = endAll({ ...ending, find });
    await clock.advance(SCAN_PAUSE_MS * 10);
    expect((await ended).sure).toBe(true);
    expect(scans).toBe(2 + EMPTY_SCANS);
  });

  test("if every scan fails, the result is not sure", async () => {
    const { ending, clock } = table();
    const ended = endAll({ ...ending, find: () => Promise.reject(new Error("EMFILE")) });
    await clock.advance(1_000);
    expect(await ended).toEqual({ killed: [], left: [], sure: false });
  });

  test("a scan that never settles does not delay the deadline", async () => {
    const { ending, clock } = table();
    const signalled: unknown[] = [];
    const send: EndAllOptions["send"] = (identity) => {
      signalled.push(identity);
      return "gone";
    };
    const ended = endAll({ ...ending, send, find: () => new Promise(() => undefined), deadlineMs: 100 });
    await clock.advance(100);
    expect(await ended).toEqual({ killed: [], left: [], sure: false });
    expect(signalled).toEqual([]);
  });

  test("`meet` signals a process immediately, and does nothing after the deadline", async () => {
    const { ending, clock, alive, sent } = table(10, 11);
    const scanning = Promise.withResolvers<readonly Identity[]>();
    const met: ((identity: Identity) => void)[] = [];
    const find: EndAllOptions["find"] = (meet) => {
      met.push(meet);
      meet(one(10));
      return scanning.promise;
    };
    const ended = endAll({ ...ending, find, deadlineMs: 100 });
    expect([sent, [...alive]]).toEqual([["SIGKILL 10"], [11]]);
    await clock.advance(100);
    met[0]?.(one(11));
    expect(await ended).toEqual({ killed: [one(10)], left: [], sure: false });
    expect(alive).toEqual(new Set([11]));
  });

  test("with freezeFirst, kills only after a scan without new processes, since orphans have no descent", async () => {
    const { ending, clock, alive, sent } = table(10, 11);
    // 11 is the child of 10, found only while 10 is alive; it has just forked 12.
    const family = [10, 11, 12];
    let scans = 0;
    const ended = endAll({
      ...ending,
      freezeFirst: true,
      find: async () => {
        scans += 1;
        if (scans === 2) alive.add(12);
        return alive.has(10) ? family.filter((pid) => alive.has(pid)).map(one) : [];
      },
    });
    await clock.advance(1_000);
    expect(await ended).toEqual({ killed: family.map(one), left: [], sure: true });
    expect(sent).toEqual([...family.map((pid) => `SIGSTOP ${pid}`), ...family.map((pid) => `SIGKILL ${pid}`)]);
  });

  test("a scan that found only dead processes does not count as empty", async () => {
    const { ending, clock } = table();
    let scans = 0;
    const ended = endAll({ ...ending, find: async () => (++scans <= 5 ? [one(scans)] : []) });
    await clock.advance(1_000);
    expect(await ended).toEqual({ killed: [], left: [], sure: true });
    expect(scans).toBe(5 + EMPTY_SCANS);
  });

  test("a fork storm is frozen before it is killed, and never left frozen", {
    meta: { id: "G19/fork-storm-frozen-first" },
  }, async () => {
    const { ending, clock, alive, sent } = table(10);
    let born = 10;
    // It forks whenever there is room, and each kill makes room: only freezing ends it.
    const frozen = new Set<number>();
    const roomMax = 4;
    const ended = endAll({
      ...ending,
      find: async () => {
        if ([...alive].some((pid) => !frozen.has(pid)) || alive.size === 0) {
          while (alive.size < roomMax && born < 1_000 && frozen.size < roomMax) alive.add(++born);
        }
        return [...alive].map(one);
      },
      send: (identity, signal) => {
        if (signal === "SIGSTOP") frozen.add(identity.pid);
        return ending.send?.(identity, signal) ?? "gone";
      },
    });
    await clock.advance(1_000);
    expect(await ended).toMatchObject({ left: [], sure: true });
    expect(sent.filter((line) => line.startsWith("SIGSTOP"))).toHaveLength(roomMax);
    expect(born).toBe(10 + (roomMax - 1) + roomMax * STORM_ROUNDS);
    expect(alive).toEqual(new Set());
  });

  test("processes still frozen at the deadline are killed", async () => {
    const { ending, clock, sent } = table(1);
    let next = 10;
    const ended = endAll({
      ...ending,
      find: async () => [one(++next)],
      isStill: () => true,
      send: ({ pid }, signal) => {
        sent.push(`${signal} ${pid}`);
        return "sent";
      },
      deadlineMs: 100,
    });
    await clock.advance(100);
    const { left } = await ended;
    for (const { pid } of left) expect(sent.filter((line) => line.endsWith(` ${pid}`)).at(-1)).toBe(`SIGKILL ${pid}`);
    expect(left.length).toBeGreaterThan(STORM_ROUNDS);
  });
});

/** Starts a shell that carries a cookie. Its output closes when the last process of the tree has ended. */
async function marked(name: string, script: string) {
  const cookie = makeCookie(`proc_scan${process.pid}.1`, name);
  const child = spawn("/bin/sh", ["-c", script], {
    env: { PATH: process.env.PATH, [COOKIE_NAME]: cookie },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const find: EndAllOptions["find"] = (meet) => carrying(cookie, PROC, meet);
  onTestFinished(async () => {
    await endAll({ find, clock: systemClock, deadlineMs: 5_000 });
  });
  const closed = once(child.stdout, "close");
  await once(child.stdout, "data");
  return { find, closed };
}

describe("G19: real trees that carry a cookie end completely", () => {
  test.each([
    ["plain", "sleep 4711 & sleep 4712 & echo up; wait"],
    ["its own session", "setsid sh -c 'echo up; sleep 4711' & wait"],
    ["a daemon", "(setsid sh -c '(sleep 4711 & echo up)' &)"],
    ["ignores SIGTERM", "trap '' TERM INT HUP; (sleep 4711 & echo up; wait)"],
    ["stopped", "sh -c 'echo up; kill -STOP $$' & wait"],
    // Each lives for some milliseconds in its own session, and leaves a successor.
    ["a pid hopper", 'export HOP=\'sleep 0.005; setsid sh -c "$HOP" &\'; sh -c "$HOP"; echo up'],
  ])("%s", async (name, script) => {
    const { find, closed } = await marked(name.replaceAll(" ", "-"), script);
    const ended = await endAll({ find, clock: systemClock, deadlineMs: 5_000 });
    expect(ended).toMatchObject({ left: [], sure: true });
    expect(ended.killed.length).toBeGreaterThan(0);
    await closed;
  });
});
