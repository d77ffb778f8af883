// Anchors that are only told to be some: what is asked of them, and what is made of how they end. The real ones are in
// `self-test.test.ts`.
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

/** The command, which leads a group, a companion in it, and another who has left it. All of them end with the test. */
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

interface Staging {
  readonly clock?: Clock;
  readonly sharedScan?: SharedScan;
  readonly cookie?: string;
}

/** Holds a tree by a leader that does nothing but remember. */
function holding(
  identity: Identity,
  { clock = manualClock(), sharedScan: census = new SharedScan(), cookie = plan.cookie }: Staging,
) {
  const told: string[] = [];
  const leader: Leader & { exit: Leader["exit"] } = {
    ...{ identity, exit: undefined, released: true },
    kill: (signal) => void told.push(signal),
    tell: (text) => void told.push(text),
  };
  const contained = anchor({ perl: "/usr/bin/perl", arch: "x64", sharedScan: census, clock });
  if (contained === undefined) throw new Error("Everybody knows the number of this architecture.");
  const held: HeldTree = contained.hold(leader, { ...plan, cookie });
  return { held, leader, told };
}

test("there is no anchor on an architecture whose number nobody knows", () => {
  const options = { perl: "/usr/bin/perl", sharedScan: new SharedScan(), clock: manualClock() };
  expect(anchor({ ...options, arch: "mips" })).toBeUndefined();
  expect(anchor({ ...options, arch: "arm64" })?.wrap(plan).args[2]).toBe("167");
});

describe("a tree at an anchor", () => {
  test("is not held when its command has ended", () => {
    const nobody = { pid: 4_194_305, startTime: 1, bootId: "boot" };
    expect(() => holding(nobody, {})).toThrow("The tree has ended before it was held.");
  });

  test("has left whoever is there besides the command, and was asked who is in its group", async () => {
    const { identity, pids } = await tree(plan.cookie);
    const [, command, companion, other] = pids;
    const { held } = holding(identity, {});
    expect([held.pid, held.identity]).toEqual([command, identity]);
    expect(held.left()).toEqual([
      { pid: companion, asked: true },
      { pid: other, asked: false },
    ]);
  });

  test("is asked and ended by a word to the anchor, which hears it also if somebody has stopped it", async () => {
    const { identity } = await tree(plan.cookie);
    const { held, told } = holding(identity, {});
    held.ask();
    expect(told.splice(0)).toEqual(["T"]);
    held.force();
    expect(told).toEqual(["SIGCONT", "K"]);
  });

  test("is gone when the anchor says so by how it ends, and nobody is looked for", async () => {
    const { identity } = await tree(plan.cookie);
    const clock = manualClock();
    const { held, leader, told } = holding(identity, {
      clock,
      sharedScan: new SharedScan(() => Promise.reject(new Error())),
    });
    const verified = held.verify(200, []);
    await clock.advance(50);
    leader.exit = { code: 77, signal: null };
    await clock.advance(49);
    expect(await Promise.race([verified, "goes on"])).toEqual({ killed: 0, left: [] });
    expect(told).toEqual([]);
  });

  test("whose anchor was killed is found by its marks and ended, and reported as unverified", async () => {
    // By this mark everybody is looked for, so it must be nobody else's.
    const cookie = `proc_anchor.2:${randomBytes(9).toString("base64url")}`;
    const { identity } = await tree(cookie);
    const { held, leader, told } = holding(identity, { clock: systemClock, cookie });
    leader.exit = { code: null, signal: "SIGKILL" };
    // Three have left the group of the leader, and are told from strangers by their marks alone.
    // Whether anybody has shed them cannot be told any more, so the anchor itself is named.
    const { pid } = leader.identity;
    expect(await held.verify(200, [])).toEqual({ killed: 3, left: [pid], unverified: true });
    expect(told).toEqual(["SIGKILL"]);
  });

  test("whose anchor does not end is looked for after half of the time, and given up after all of it", async () => {
    const { identity } = await tree(plan.cookie);
    const clock = manualClock();
    // It is not the first thing that this clock sees.
    clock.tick(70);
    let looks = 0;
    const sharedScan = new SharedScan(() => {
      looks += 1;
      return Promise.reject(new Error("out of files"));
    });
    const { held, told } = holding(identity, { clock, sharedScan });
    const verified = held.verify(200, []);
    await clock.advance(99);
    expect(looks).toBe(0);
    await clock.advance(1);
    expect(looks).toBe(1);
    // To be sure of it takes longer than to end it, by what `marked-tree.ts` allows.
    await clock.advance(1_599);
    expect(await Promise.race([verified, "goes on"])).toBe("goes on");
    expect(told).toEqual([]);
    await clock.advance(1);
    expect(await verified).toEqual({ killed: 0, left: [identity.pid] });
    expect(told).toEqual(["SIGKILL"]);
  });
});
