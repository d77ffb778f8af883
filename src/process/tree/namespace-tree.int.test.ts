// Trees as a namespace has them, of real processes without one: what is found, told and signalled is the same; only
// the kernel does not end them.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { describe, expect, onTestFinished, test } from "vitest";
import { endsBetweenLooks, readsDuring } from "../../../test/fixtures/vanishing-process.ts";
import { manualClock } from "../../testing/manual-clock.ts";
import type { LaunchPlan, Leader } from "../containment/containment.ts";
import { holdNamespace } from "./namespace-tree.ts";
import { descendantsOf, type Identity, identityOf, isStill } from "./proc.ts";
import { send } from "./signal.ts";

const plan: LaunchPlan = {
  ...{ id: "proc_ns.1", cookie: "proc_ns.1:x", argv: ["/bin/true"], env: {}, cwd: "/", workspace: "/" },
  ...{ profile: "none", limits: { processesMax: 100 }, terminal: false },
};

/** The command, a companion in its group, and another who has left it. */
const FIRST = "sleep 8000711 & sleep 8000711 & setsid sh -c 'echo up; exec sleep 8000711' & wait";

/** A leader with these below it; it says how the first process has ended. All of them end with the test. */
async function tree(first: string = FIRST) {
  const outer = 'setsid /bin/sh -c "$1" & wait $!; echo ended $?; exec sleep 8000711';
  const child = spawn("/bin/sh", ["-c", outer, "leader", first], {
    ...{ detached: true, stdio: ["ignore", "pipe", "ignore"] },
  });
  const closed = once(child.stdout, "close");
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  await lines.next();
  const pids = [Number(child.pid), ...descendantsOf(Number(child.pid))];
  const all = pids.flatMap((pid) => identityOf(pid) ?? []);
  onTestFinished(async () => {
    for (const one of all) send(one, "SIGKILL");
    await closed;
  });
  const [identity, of] = all;
  if (identity === undefined || of === undefined) throw new Error("A tree that has spoken is there.");
  return { ...leading(identity), lines, first: of, pids };
}

function leading(identity: Identity) {
  const told: string[] = [];
  const leader: Leader = {
    ...{ identity, exit: undefined, released: true, tell: () => undefined },
    kill: (signal) => void told.push(signal),
  };
  return { leader, told };
}

describe("a tree in a namespace", () => {
  test("is known by its first process, and is its command's", async () => {
    const { leader, first, pids } = await tree();
    const held = holdNamespace(leader, plan, manualClock());
    expect([held.identity, held.pid]).toEqual([first, pids[2]]);
  });

  test("is not held when its leader has nobody, or its first process has no command", async () => {
    const nobody = leading({ pid: 4_194_305, startTime: 1, bootId: "boot" }).leader;
    const { leader } = await tree("echo up; exec sleep 8000711");
    for (const one of [nobody, leader]) {
      expect(() => holdNamespace(one, plan, manualClock())).toThrow("The tree has ended before it was held.");
    }
  });

  test("has left whoever is there besides the command, and was asked who is in its group", async () => {
    const { leader, pids } = await tree();
    const [, , , companion, other] = pids;
    expect(holdNamespace(leader, plan, manualClock()).left()).toEqual([
      { pid: companion, asked: true },
      { pid: other, asked: false },
    ]);
  });

  test("G40: names no more of a storm than is asked for, nearest first, and reads no more", async () => {
    const many = `for one in ${"x ".repeat(40)}; do sleep 8000711 & done; echo up; wait`;
    const { leader, pids } = await tree(many);
    const held = holdNamespace(leader, plan, manualClock());
    const all = held.left();
    expect(all.map(({ pid }) => pid)).toEqual(pids.slice(3));
    const read = await readsDuring(() => expect(held.left(5)).toEqual(all.slice(0, 5)));
    expect(read.filter((path) => path.endsWith("/stat")).length).toBeLessThan(20);
  });

  test("has not left who ends while it is looked at", async () => {
    const { leader, pids } = await tree();
    const [, , , companion, other] = pids;
    const held = holdNamespace(leader, plan, manualClock());
    endsBetweenLooks(Number(companion));
    expect(held.left()).toEqual([{ pid: other, asked: false }]);
  });

  test("is ended by its leader, and at once by its group", async () => {
    const { leader, told, lines } = await tree();
    holdNamespace(leader, plan, manualClock()).force();
    expect(told).toEqual(["SIGKILL"]);
    expect((await lines.next()).value).toBe("ended 137");
  });

  test("is gone with its first process, and until then all of it is told as left", async () => {
    const { leader, lines, first, pids } = await tree();
    const clock = manualClock();
    const held = holdNamespace(leader, plan, clock);
    const verified = held.verify(100, []);
    await clock.advance(99);
    expect(await Promise.race([verified, "goes on"])).toBe("goes on");
    await clock.advance(1);
    expect(await verified).toEqual({ killed: 0, left: pids.slice(1) });
    held.force();
    await lines.next();
    expect(isStill(first)).toBe(false);
    expect(await held.verify(100, [])).toEqual({ killed: 0, left: [] });
  });
});
