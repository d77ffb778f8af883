import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { systemClock } from "../engine/system-clock.ts";
import { Census } from "./census.ts";
import type { Containment } from "./containment.ts";
import { gateArguments, leaderScript, SHELL } from "./gate.ts";
import { lookAtMachine } from "./machine.ts";
import { MarkedTree } from "./marked-tree.ts";
import { MECHANISMS, makeContainment } from "./mechanisms.ts";
import { childrenOf } from "./proc.ts";
import { selfTest } from "./self-test.ts";
import { choose } from "./tiers.ts";

const workspace = realpathSync(mkdtempSync(join(tmpdir(), "belay-self-test-")));
afterAll(() => rmSync(workspace, { recursive: true, force: true }));

const machine = lookAtMachine();
const around = { machine, stateDir: workspace, workspace, clock: systemClock };

/** Ends only its leader, as a careless supervisor does. What it leaves is found when all is over. */
function careless(onEnd: () => void): Containment {
  return {
    ...{ mechanism: "group", tier: "anchor", profiles: ["none"] },
    wrap: (plan) => ({ file: SHELL, args: ["-c", leaderScript(), "belay", ...gateArguments(plan)] }),
    hold: (leader, plan) => {
      const marked = new MarkedTree(leader, plan.cookie, { census: new Census(), clock: systemClock });
      return {
        ...{ pid: childrenOf(leader.identity.pid)[0] ?? 0, identity: leader.identity },
        ...{ ask: () => undefined, left: () => [] },
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

  test("says why a mechanism that is not there cannot be used", async () => {
    const result = await selfTest({ clock: systemClock, workspace, make: () => undefined });
    expect(result).toEqual({ kind: "failed", why: "what it is made of is missing" });
  });

  test("tells the words of a leader that does not start", async () => {
    const broken: Containment = {
      ...careless(() => undefined),
      wrap: () => ({ file: SHELL, args: ["-c", "echo no namespaces here >&2; exit 1"] }),
    };
    const result = await selfTest({ clock: systemClock, workspace, make: () => broken });
    expect(result).toMatchObject({ kind: "failed", why: expect.stringContaining("no namespaces here") });
  });

  test("is failed by a mechanism that leaves somebody behind", async () => {
    // Time goes faster once it is ended, so that nobody waits for real for what will not happen.
    let faster = 1;
    const clock = { ...systemClock, after: (ms: number, call: () => void) => systemClock.after(ms / faster, call) };
    const make = (): Containment =>
      careless(() => {
        faster = 50;
      });
    const result = await selfTest({ clock, workspace, make });
    expect(result).toMatchObject({ kind: "failed", why: expect.stringContaining("outlived") });
  });

  test("a machine without a program goes on to the next best", async () => {
    const { bwrap, ...programs } = machine.programs;
    const bare = { ...around, stateDir: mkdtempSync(join(workspace, "state-")), machine: { ...machine, programs } };
    const { containment, passedOver } = await choose(bare);
    containment.close?.();
    expect(containment.mechanism).not.toBe("bubblewrap");
    expect(passedOver.bubblewrap?.kind).toBe("failed");
    expect(bwrap === undefined || typeof bwrap === "string").toBe(true);
  });

  test("G20: what is required and missing is refused with the command that installs it", async () => {
    const bare = { ...machine, programs: {}, cgroup: undefined };
    const stateDir = mkdtempSync(join(workspace, "state-"));
    await expect(choose({ ...around, stateDir, machine: bare, requireTier: "namespace" })).rejects.toMatchObject({
      code: "uncontained",
      message: expect.stringContaining('"group"'),
      hint: expect.stringContaining("apt-get install bubblewrap"),
    });
  });
});
