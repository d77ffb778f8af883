// Simulated anchors: the commands they receive, and how their exit is interpreted. Real ones are in
// `self-test.int.test.ts`.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Clock } from "../../ports/clock.ts";
import { systemClock } from "../../system/system-clock.ts";
import { manualClock } from "../../testing/manual-clock.ts";
import { COOKIE_NAME } from "../launch/environment.ts";
import { descendantsOf, type Identity, identityOf } from "../tree/proc.ts";
import { SharedScan } from "../tree/shared-scan.ts";
import { send } from "../tree/signal.ts";
import { anchor } from "./anchor.ts";
import type { HeldTree, LaunchPlan, Leader } from "./containment.ts";

const plan: LaunchPlan = {
  ...{ id: "proc_anchor.1", cookie: "proc_anchor.1:x", argv: ["/bin/true"], env: {}, cwd: "/", workspace: "/" },
  ...{ profile: "none", limits: { processesMax: 100 }, terminal: false },
};

/** The command, which leads a group, one process in that group, and one that has left it. All end with the test. */
async function tree(cookie: string) {
  const command = `sleep 8000721 & setsid sh -c 'echo up; exec sleep 8000721' & wait`;
  const child = spawn("/bin/sh", ["-c", 'setsid /bin/sh -c "$1" & wait', "anchor", command], {
    ...{ detached: true, stdio: ["ignore", "pipe", "ignore"] },
    env: { PATH: process.env.PATH, [COOKIE_NAME]: cookie },
  });
  const closed = once(child.stdout, "close");
  await once(child.stdout, "data");
  const pids = [Number(child.pid), ...descendantsOf(Number(child.pid))];
  const all = pids.flatMap((pid) => identityOf(pid) ?? []);
  onTestFinished(async () => {
    for (const one of all) send(one, "SIGKILL");
    await closed;
  });
  const [identity] = all;
  if (identity === undefined) throw new Error("A tree that has spoken is there.");
  return { identity, pids };
}

interface HoldOptions {
  readonly clock?: Clock;
  readonly sharedScan?: SharedScan;
  readonly cookie?: string;
}

/** Holds a tree by a leader that only records its commands. */
function holding(
  identity: Identity,
  { clock = manualClock(), sharedScan = new SharedScan(), cookie = plan.cookie }: HoldOptions,
) {
  const log: string[] = [];
  const leader: Leader & { exit: Leader["exit"] } = {
    ...{ identity, exit: undefined, released: true },
    kill: (signal) => void log.push(signal),
    write: (text) => void log.push(text),
  };
  const contained = anchor({ perl: "/usr/bin/perl", arch: "x64", sharedScan, clock });
  if (contained === undefined) throw new Error("The number of this architecture is known.");
  const held: HeldTree = contained.hold(leader, { ...plan, cookie });
  return { held, leader, log };
}

test("an architecture without a known system call number has no anchor", () => {
  const options = { perl: "/usr/bin/perl", sharedScan: new SharedScan(), clock: manualClock() };
  expect(anchor({ ...options, arch: "mips" })).toBeUndefined();
  expect(anchor({ ...options, arch: "arm64" })?.wrap(plan).args[2]).toBe("167");
});

describe("a tree at an anchor", () => {
  test("is not held when its command has ended", () => {
    const childless = { pid: 4_194_305, startTime: 1, bootId: "boot" };
    expect(() => holding(childless, {})).toThrow("The tree has ended before it was held.");
  });

  test("reports what is left besides the command, and which of it was in the signalled group", async () => {
    const { identity, pids } = await tree(plan.cookie);
    const [, command, companion, other] = pids;
    const { held } = holding(identity, {});
    expect([held.pid, held.identity]).toEqual([command, identity]);
    expect(held.left()).toEqual([
      { pid: companion, signalled: true },
      { pid: other, signalled: false },
    ]);
  });

  test("is stopped and ended by bytes to the anchor, which is continued first in case it was stopped", async () => {
    const { identity } = await tree(plan.cookie);
    const { held, log } = holding(identity, {});
    held.sendSigterm();
    expect(log.splice(0)).toEqual(["T"]);
    held.force();
    expect(log).toEqual(["SIGCONT", "K"]);
  });

  test("is gone when the anchor exits with its code, without a scan", async () => {
    const { identity } = await tree(plan.cookie);
    const clock = manualClock();
    const { held, leader, log } = holding(identity, {
      clock,
      sharedScan: new SharedScan(() => Promise.reject(new Error())),
    });
    const verified = held.verify(200, []);
    await clock.advance(50);
    leader.exit = { code: 77, signal: null };
    await clock.advance(49);
    expect(await Promise.race([verified, "pending"])).toEqual({ killed: 0, left: [] });
    expect(log).toEqual([]);
  });

  test("whose anchor was killed is found by its marks and ended, and reported as unverified", async () => {
    // All processes are searched for this cookie, so it must be unique.
    const cookie = `proc_anchor.2:${randomBytes(9).toString("base64url")}`;
    const { identity } = await tree(cookie);
    const { held, leader, log } = holding(identity, { clock: systemClock, cookie });
    leader.exit = { code: null, signal: "SIGKILL" };
    // Three have left the leader's group and are known only by their other marks. Whether any process has shed all of
    // them is unknown, so the anchor's pid is reported.
    const { pid } = leader.identity;
    expect(await held.verify(200, [])).toEqual({ killed: 3, left: [pid], unverified: true });
    expect(log).toEqual(["SIGKILL"]);
  });

  test("whose anchor does not exit is searched after half of the time, and given up after all of it", async () => {
    const { identity } = await tree(plan.cookie);
    const clock = manualClock();
    // The clock does not start at zero.
    clock.tick(70);
    let scans = 0;
    const sharedScan = new SharedScan(() => {
      scans += 1;
      return Promise.reject(new Error("out of files"));
    });
    const { held, log } = holding(identity, { clock, sharedScan });
    const verified = held.verify(200, []);
    await clock.advance(99);
    expect(scans).toBe(0);
    await clock.advance(1);
    expect(scans).toBe(1);
    // Proving the end may take longer than ending it, by what `marked-tree.ts` allows.
    await clock.advance(1_599);
    expect(await Promise.race([verified, "pending"])).toBe("pending");
    expect(log).toEqual([]);
    await clock.advance(1);
    expect(await verified).toEqual({ killed: 0, left: [identity.pid] });
    expect(log).toEqual(["SIGKILL"]);
  });
});
