import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../system/system-clock.ts";
import { manualClock } from "../../testing/manual-clock.ts";
import { gateArguments, leaderScript, SHELL } from "../launch/gate.ts";
import { PROCESSES_MAX_DEFAULT } from "../limits.ts";
import { MarkedTree } from "../tree/marked-tree.ts";
import { until } from "../tree/poll-until.ts";
import { carrying, childrenOf, identityOf, statOf } from "../tree/proc.ts";
import { PROC_PROCESS_TABLE } from "../tree/proc-process-table.ts";
import { SharedScan } from "../tree/shared-scan.ts";
import type { Containment, LaunchPlan, Leader, Verified } from "./containment.ts";
import { lookAtMachine } from "./machine.ts";
import { MECHANISMS, makeContainment } from "./mechanisms.ts";
import { selfTest } from "./self-test.ts";
import { choose } from "./tiers.ts";

const workspace = realpathSync(mkdtempSync(join(tmpdir(), "belay-self-test-")));
afterAll(() => rmSync(workspace, { recursive: true, force: true }));

const machine = lookAtMachine();
const around = { machine, stateDir: workspace, workspace, clock: systemClock };

/** Ends only its leader, as a careless supervisor does. The rest is found at the end. */
function careless(onEnd: () => void): Containment {
  return {
    ...{ mechanism: "group", tier: "anchor", profiles: ["none"] },
    wrap: (plan) => ({ file: SHELL, args: ["-c", leaderScript(), "belay", ...gateArguments(plan)] }),
    hold: (leader, plan) => {
      const marked = new MarkedTree(leader, plan.cookie, { sharedScan: new SharedScan(), clock: systemClock });
      return {
        ...{ pid: childrenOf(leader.identity.pid)[0] ?? 0, identity: leader.identity },
        ...{ sendSigterm: () => undefined, left: () => [] },
        force: () => {
          leader.kill("SIGKILL");
          onEnd();
        },
        verify: (waitMs) => marked.end(waitMs),
      };
    },
    close: onEnd,
  };
}

/** A containment whose leader is this script. It holds nothing. */
const led = (script: string, meet: (plan: LaunchPlan) => void = () => undefined): Containment => ({
  ...careless(() => undefined),
  wrap: (plan) => {
    meet(plan);
    return { file: SHELL, args: ["-c", script] };
  },
});

/**
 * Makes `group` as a self-test requests it: first for a tree that is stopped, then for one whose server is killed. Each
 * may be changed.
 */
function makerOf(...changes: readonly ((real: Containment) => Containment)[]): () => Containment {
  const left = [...changes];
  return () => {
    const real = makeContainment("group", around);
    if (real === undefined) throw new Error("Every machine has it.");
    // Its watchdog is closed, whatever a change makes of `close`.
    onTestFinished(() => real.close?.());
    return left.shift()?.(real) ?? real;
  };
}

const asItIs = (real: Containment): Containment => real;

/** A clock that shortens the next timeout on request, so that no test waits for an event that never comes. */
function impatient(soonMs = 0) {
  let hurried = false;
  const after = (ms: number, call: () => void): (() => void) => {
    const stepMs = hurried ? soonMs : ms;
    hurried = false;
    return systemClock.after(stepMs, call);
  };
  const hurry = (): void => {
    hurried = true;
  };
  return { clock: { ...systemClock, after }, hurry };
}

const sessionOf = (pid: number): number | undefined => {
  const stat = statOf(pid);
  return typeof stat === "string" ? undefined : stat.session;
};

describe("the self-test", () => {
  const here = MECHANISMS.filter((mechanism) => {
    const containment = makeContainment(mechanism, around);
    containment?.close?.();
    return containment !== undefined;
  });

  test.each(here)("is passed by %s, where it is installed", async (mechanism) => {
    const make = (): Containment | undefined => makeContainment(mechanism, around);
    expect(await selfTest({ clock: systemClock, workspace, make })).toEqual({ kind: "passed" });
  });

  test("gives the reason why a missing mechanism cannot be used", async () => {
    const result = await selfTest({ clock: systemClock, workspace, make: () => undefined });
    expect(result).toEqual({ kind: "failed", why: "a program or kernel feature that it needs is missing" });
  });

  test("quotes the stderr of a leader that does not start, up to a limit", async () => {
    const whyOf = (script: string) => selfTest({ clock: systemClock, workspace, make: () => led(script) });
    const short = await whyOf("echo no namespaces here >&2; exit 1");
    expect(short).toEqual({ kind: "failed", why: "it did not start: no namespaces here" });
    const long = await whyOf("printf %05000d 0 >&2; exit 1");
    expect(long).toEqual({ kind: "failed", why: `it did not start: ${"0".repeat(2_000)}` });
  });

  test("fails in a workspace that is gone", async () => {
    const gone = join(workspace, "gone");
    const result = await selfTest({ clock: systemClock, workspace: gone, make: makerOf() });
    expect(result).toEqual({ kind: "failed", why: "spawn /bin/sh ENOENT" });
  });

  test("reports an error of the mechanism, and a leader that has died", async () => {
    const throwing = (): Containment => ({
      ...led("exit"),
      wrap: () => {
        throw new Error("no room for a group");
      },
    });
    expect(await selfTest({ clock: systemClock, workspace, make: throwing })).toEqual({
      ...{ kind: "failed", why: "no room for a group" },
    });
    const processTable = { ...PROC_PROCESS_TABLE, childrenOf: () => [] };
    expect(await selfTest({ clock: systemClock, workspace, make: makerOf(), processTable })).toEqual({
      ...{ kind: "failed", why: "its leader has died" },
    });
  });

  test("is failed by a process that ended by itself before it could be ended", async () => {
    const brief: Containment = {
      ...careless(() => undefined),
      // The gate leads, so nothing is left when its command has ended.
      wrap: (plan) => ({ file: SHELL, args: gateArguments({ ...plan, argv: ["/bin/true"] }).slice(1) }),
      hold: ({ identity }) => ({
        ...{ pid: identity.pid, identity, sendSigterm: () => undefined, force: () => undefined, left: () => [] },
        verify: async () => ({ killed: 0, left: [] }),
      }),
    };
    const result = await selfTest({ clock: systemClock, workspace, make: () => brief });
    expect(result).toEqual({ kind: "failed", why: "the test process ended by itself" });
  });

  test("gives up a leader that hangs, and leaves no server process behind", async () => {
    const clock = manualClock();
    const pids = join(mkdtempSync(join(workspace, "pids-")), "pids");
    const lines = (): readonly string[] => (existsSync(pids) ? readFileSync(pids, "utf8").trim().split("\n") : []);
    const columnOf = (at: number): readonly number[] => lines().map((line) => Number(line.split(" ")[at]));
    const make = (): Containment => led(`echo $PPID $$ >>'${pids}'; exec sleep 8000701`);
    const result = selfTest({ clock, workspace, make });
    await expect.poll(() => lines().length, { timeout: 10_000 }).toBe(2);
    // Unlike the leaders of real mechanisms, these notice neither the end of their server nor of their pipe.
    onTestFinished(() => {
      for (const pid of columnOf(1)) process.kill(pid, "SIGKILL");
    });
    await clock.advance(5_000);
    expect(await result).toEqual({ kind: "failed", why: "the test process did not start in time" });
    const servers = (): readonly number[] => columnOf(0).filter((pid) => identityOf(pid) !== undefined);
    await expect.poll(servers, { timeout: 10_000 }).toEqual([]);
  });

  test("uses an ordinary plan, and a tree that sheds its environment where it can be found without", async () => {
    const plans: LaunchPlan[] = [];
    const make = (): Containment => led("exit 1", (plan) => plans.push(plan));
    await selfTest({ clock: systemClock, workspace, make });
    await selfTest({ clock: systemClock, workspace, make, processTable: { ...PROC_PROCESS_TABLE, kind: "ps" } });
    expect(plans.map(({ argv }) => argv.join(" ").includes("env -i"))).toEqual([true, true, false, false]);
    for (const plan of plans) {
      expect(plan).toMatchObject({ profile: "none", terminal: false, limits: { processesMax: PROCESSES_MAX_DEFAULT } });
    }
    expect(new Set(plans.map(({ cookie }) => cookie)).size).toBe(4);
  });

  test("has an ordinary leader: in its own session, killed on request, with an exit status", async () => {
    const leaders: Leader[] = [];
    const sessions: (number | undefined)[] = [];
    const exits: Leader["exit"][] = [];
    const verified: Promise<Verified>[] = [];
    const watched = (real: Containment): Containment => ({
      ...real,
      hold: (leader, plan) => {
        leaders.push(leader);
        sessions.push(sessionOf(leader.identity.pid));
        const held = real.hold(leader, plan);
        return {
          ...held,
          force: () => leader.kill("SIGKILL"),
          verify: async (waitMs, wakes) => {
            await until(() => leader.exit !== undefined, { clock: systemClock, waitMs: 1_000 });
            exits.push(leader.exit);
            verified.push(held.verify(waitMs, wakes));
            return (await verified.at(-1)) ?? { killed: 0, left: [] };
          },
        };
      },
    });
    const make = makerOf(watched, watched);
    expect(await selfTest({ clock: systemClock, workspace, make })).toEqual({ kind: "passed" });
    expect(leaders).toHaveLength(2);
    expect(sessions).not.toContain(sessionOf(process.pid));
    expect(new Set(exits.map((exit) => JSON.stringify(exit)))).toEqual(new Set(['{"code":null,"signal":"SIGKILL"}']));
    expect((await Promise.all(verified)).flatMap(({ left }) => left)).toEqual([]);
  });

  test("is failed by a mechanism that ends its tree only when the server dies", async () => {
    const { clock, hurry } = impatient();
    const calls: string[] = [];
    const deaf = (real: Containment): Containment => ({
      ...real,
      // Not the tier whose members are ended one by one, so that only `force` could end them.
      tier: "anchor",
      hold: (leader, plan) => {
        const held = real.hold(leader, plan);
        return {
          ...held,
          force: () => {
            if (calls.length === 0) hurry();
            calls.push("force");
          },
          verify: (waitMs, wakes) => {
            calls.push("verify");
            return held.verify(waitMs, wakes);
          },
        };
      },
    });
    const result = await selfTest({ clock, workspace, make: makerOf(deaf, asItIs) });
    expect(result).toEqual({ kind: "failed", why: "a process that had left its session outlived the kill" });
    expect(calls).toEqual(["force", "force", "verify"]);
  });

  test("is failed by a mechanism that leaves its trees when the server is killed, and cleans up", async () => {
    // Long enough for a tree that would end with the simulated server by itself.
    const { clock, hurry } = impatient(300);
    const cookies: string[] = [];
    const forgetful = (real: Containment): Containment => ({
      ...real,
      wrap: (plan) => {
        cookies.push(plan.cookie);
        return real.wrap(plan);
      },
      close: () => {
        // Once, when its server is killed: it is closed again at the end, when other timers are running.
        if (cookies.length === 1) hurry();
        cookies.push("closed");
      },
    });
    const result = await selfTest({ clock, workspace, make: makerOf(asItIs, forgetful) });
    expect(result).toEqual({ kind: "failed", why: "a process outlived the server that had started it" });
    expect(await carrying(cookies[0] ?? "")).toEqual([]);
  });

  test("is failed by a mechanism that leaves a process behind", async () => {
    // The clock runs faster after the end, so that the test does not wait in real time for an event that never comes.
    let faster = 1;
    const clock = { ...systemClock, after: (ms: number, call: () => void) => systemClock.after(ms / faster, call) };
    const make = (): Containment =>
      careless(() => {
        faster = 50;
      });
    const result = await selfTest({ clock, workspace, make });
    expect(result).toMatchObject({ kind: "failed", why: expect.stringContaining("outlived") });
  });

  test("a machine without a program uses the next best mechanism", async () => {
    const { bwrap, ...programs } = machine.programs;
    const bare = { ...around, stateDir: mkdtempSync(join(workspace, "state-")), machine: { ...machine, programs } };
    const { containment, passedOver } = await choose(bare);
    containment.close?.();
    expect(containment.mechanism).not.toBe("bubblewrap");
    expect(passedOver.bubblewrap?.kind).toBe("failed");
    expect(bwrap === undefined || typeof bwrap === "string").toBe(true);
  });

  test("G20: a required tier that is missing is refused with the command that installs it", async () => {
    const bare = { ...machine, programs: {}, cgroup: undefined };
    const stateDir = mkdtempSync(join(workspace, "state-"));
    await expect(choose({ ...around, stateDir, machine: bare, requireTier: "namespace" })).rejects.toMatchObject({
      code: "uncontained",
      message: expect.stringContaining('"group"'),
      hint: expect.stringContaining("apt-get install bubblewrap"),
    });
  });
});
