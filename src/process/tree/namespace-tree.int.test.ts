// Trees of real processes in the shape of a namespace, without one: discovery, reports and signals are the same, but
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

/** The command, one process in its group, and one that has left it. */
const FIRST = "sleep 8000711 & sleep 8000711 & setsid sh -c 'echo up; exec sleep 8000711' & wait";

/** A leader with these descendants; it prints how the first process has ended. All of them end with the test. */
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
  const log: string[] = [];
  const leader: Leader = {
    ...{ identity, exit: undefined, released: true, write: () => undefined },
    kill: (signal) => void log.push(signal),
  };
  return { leader, log };
}

describe("a tree in a namespace", () => {
  test("is identified by its first process, and reports the pid of its command", async () => {
    const { leader, first, pids } = await tree();
    const held = holdNamespace(leader, plan, manualClock());
    expect([held.identity, held.pid]).toEqual([first, pids[2]]);
  });

  test("is not held if its leader has no child, or its first process has no command", async () => {
    const childless = leading({ pid: 4_194_305, startTime: 1, bootId: "boot" }).leader;
    const { leader } = await tree("echo up; exec sleep 8000711");
    for (const one of [childless, leader]) {
      expect(() => holdNamespace(one, plan, manualClock())).toThrow("The tree has ended before it was held.");
    }
  });

  test("reports what is left besides the command, and which of it was in the signalled group", async () => {
    const { leader, pids } = await tree();
    const [, , , companion, other] = pids;
    expect(holdNamespace(leader, plan, manualClock()).left()).toEqual([
      { pid: companion, signalled: true },
      { pid: other, signalled: false },
    ]);
  });

  test("G40: reports at most the requested number of processes, nearest first, and reads no more", async () => {
    const many = `for one in ${"x ".repeat(40)}; do sleep 8000711 & done; echo up; wait`;
    const { leader, pids } = await tree(many);
    const held = holdNamespace(leader, plan, manualClock());
    const all = held.left();
    expect(all.map(({ pid }) => pid)).toEqual(pids.slice(3));
    const read = await readsDuring(() => expect(held.left(5)).toEqual(all.slice(0, 5)));
    expect(read.filter((path) => path.endsWith("/stat")).length).toBeLessThan(20);
  });

  test("does not report a process that ends during the scan", async () => {
    const { leader, pids } = await tree();
    const [, , , companion, other] = pids;
    const held = holdNamespace(leader, plan, manualClock());
    endsBetweenLooks(Number(companion));
    expect(held.left()).toEqual([{ pid: other, signalled: false }]);
  });

  test("is ended by its leader, and at once by its group", async () => {
    const { leader, log, lines } = await tree();
    holdNamespace(leader, plan, manualClock()).force();
    expect(log).toEqual(["SIGKILL"]);
    expect((await lines.next()).value).toBe("ended 137");
  });

  test("is gone with its first process, and until then reports all of it as left", async () => {
    const { leader, lines, first, pids } = await tree();
    const clock = manualClock();
    const held = holdNamespace(leader, plan, clock);
    const verified = held.verify(100, []);
    await clock.advance(99);
    expect(await Promise.race([verified, "pending"])).toBe("pending");
    await clock.advance(1);
    expect(await verified).toEqual({ killed: 0, left: pids.slice(1) });
    held.force();
    await lines.next();
    expect(isStill(first)).toBe(false);
    expect(await held.verify(100, [])).toEqual({ killed: 0, left: [] });
  });
});
