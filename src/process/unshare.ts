// Containment by a PID namespace without bubblewrap: what util-linux brings is enough for it.
//
// Only the view of processes is the tree's own. Files of its own would take mounts that `unshare` does not make, so the
// profile `workspace` is refused here: half of a wall is worse than none, because somebody would rely on it.
import type { Clock } from "../ports.ts";
import type { Containment, Plan } from "./containment.ts";
import { gateArguments, leaderScript, SHELL } from "./gate.ts";
import { capLine, dropRights, holdNamespace } from "./namespace-tree.ts";

export interface UnshareOptions {
  readonly unshare: string;
  readonly setpriv: string;
  readonly setsid: string;
  readonly userNamespace: boolean;
  /** Whether the kernel counts pids per namespace. */
  readonly caps: boolean;
  readonly clock: Clock;
}

export function unshare(options: UnshareOptions): Containment {
  return {
    mechanism: "unshare",
    tier: "namespace",
    profiles: ["none", "contain"],
    wrap: (plan) => ({ file: options.setpriv, args: unshareArguments(options, plan) }),
    hold: (leader, plan) => holdNamespace(leader, plan, options.clock),
  };
}

export function unshareArguments(options: UnshareOptions, plan: Plan): readonly string[] {
  const { userNamespace, caps, setpriv } = options;
  return [
    // `unshare` ends its child when it ends, but nobody ends `unshare` with the server: each link needs its own.
    ...["--pdeathsig", "KILL", "--", options.unshare],
    ...(userNamespace ? ["--user", "--map-current-user", ...(caps ? ["--keep-caps"] : [])] : []),
    ...["--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--"],
    // A group of its own for the command, in which `unshare` is not.
    ...[options.setsid, SHELL, "-c", leaderScript(caps ? capLine(plan.limits.processesMax) : ""), "belay"],
    ...(userNamespace && caps ? dropRights(setpriv) : []),
    ...gateArguments(plan),
  ];
}
