// Gives commands a lower priority than the server, so that a storm of them does not hold up a stop.
import { getPriority, setPriority } from "node:os";
import type { Tier } from "../../ports/spawner.ts";
import type { HeldTree, LaunchPlan } from "../containment/containment.ts";
import { type CpuGroups, CpuShare } from "../containment/cpu-share.ts";
import { COMMAND_NICENESS } from "../limits.ts";

export interface Yielding {
  readonly held: HeldTree;
  readonly share: CpuShare | undefined;
}

export interface YieldOptions {
  readonly tier: Tier;
  /** Undefined: trees have no share to be made smaller. */
  readonly groups: CpuGroups | undefined;
}

/** The kernel kills all of such a tree at once. Where a program does so, a storm forks on meanwhile. */
const KILLED_AT_ONCE: ReadonlySet<Tier> = new Set<Tier>(["namespace", "cgroup"]);

/**
 * What the command forks has its priority too. It still waits at its gate, so it has no children yet.
 */
export function yieldTo(held: HeldTree, { cookie }: LaunchPlan, { tier, groups }: YieldOptions): Yielding {
  try {
    setPriority(held.pid, Math.max(getPriority(held.pid), COMMAND_NICENESS));
  } catch {
    // Not allowed here, or it has just died; that is met where its end is.
  }
  if (groups === undefined) return { held, share: undefined };
  const share = new CpuShare(groups, cookie.replace(":", "."), held.pid);
  const force = (): void => {
    held.force();
    if (KILLED_AT_ONCE.has(tier)) share.hurry();
  };
  return { held: { ...held, force }, share };
}
