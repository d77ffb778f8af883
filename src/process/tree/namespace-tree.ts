// A tree in its own PID namespace. The kernel ends all of it when its first process ends, and keeps that first process
// until every other one is gone. So the end of one process, which we can prove, is the end of all.
//
// The chain: leader (bwrap or unshare, our child) → first process of the namespace → command. The kernel ends the first
// process when the leader dies, and the leader when the server does.
import type { Clock } from "../../ports/clock.ts";
import type { HeldTree, LaunchPlan, Leader, Leftover, Verified } from "../containment/containment.ts";
import { DESCENDANTS_MAX } from "../limits.ts";
import { sigtermGroup, sigtermTerminal } from "./polite-signal.ts";
import { until } from "./poll-until.ts";
import { childrenOf, descendantsOf, type Identity, identityOf, PROC, presenceOf, statOf } from "./proc.ts";
import { sendGroup } from "./signal.ts";

/** Pids that a new namespace reserves. They are added to the cap, which would be too low without them. */
const PIDS_RESERVED = 300;

/** Throws if the chain is incomplete: then a part of it has died, and the leader's stderr says why. */
export function holdNamespace(leader: Leader, plan: LaunchPlan, clock: Clock): HeldTree {
  const first = onlyChildOf(leader.identity.pid);
  const command = onlyChildOf(first.pid);
  return {
    pid: command.pid,
    identity: first,
    sendSigterm: () => {
      if (plan.terminal) sigtermTerminal(command);
      // The first process leads the command's group and survives this: the kernel delivers to the first process of a
      // namespace no signal that would end it, except SIGKILL from outside.
      else sigtermGroup(first);
    },
    force: () => {
      // The leader first, so that it cannot report the other deaths: its stderr is the command's. The kernel then ends
      // the first process, and with it all others.
      leader.kill("SIGKILL");
      // The same effect without that delay: most trees are in one group, which dies at once.
      sendGroup(first, "SIGKILL");
    },
    left: (max) => leftIn(first, command.pid, max),
    verify: async (waitMs, wakes): Promise<Verified> => {
      const gone = await until(() => presenceOf(first) === "gone", { clock, waitMs, wakes });
      return { killed: 0, left: gone ? [] : [first.pid, ...descendantsOf(first.pid)] };
    },
  };
}

function leftIn(first: Identity, command: number, max = DESCENDANTS_MAX): readonly Leftover[] {
  // The command, and `max` other processes.
  const pids = descendantsOf(first.pid, PROC, max + 1).filter((pid) => pid !== command);
  return pids.slice(0, max).flatMap((pid) => {
    const stat = statOf(pid);
    return typeof stat === "string" ? [] : [{ pid, signalled: stat.group === first.pid }];
  });
}

function onlyChildOf(pid: number): Identity {
  const [child] = childrenOf(pid);
  const identity = child === undefined ? undefined : identityOf(child);
  if (identity === undefined) throw new Error("The tree has ended before it was held.");
  return identity;
}

/**
 * Whether the kernel counts pids per namespace (since 6.14). On older kernels the setting is machine-wide and must not
 * be changed.
 */
export function countsPerNamespace(release: string): boolean {
  const [major = 0, minor = 0] = release.split(/[.-]/).map(Number);
  return major > 6 || (major === 6 && minor >= 14);
}

/**
 * Shell lines for the leader that cap the tree. Numbering starts behind the reserved pids, or those would be added to
 * the cap until all are used. A tree that cannot be capped is started all the same; `doctor` reports it.
 */
export const capLine = (processesMax: number, proc = "/proc"): string =>
  [
    `echo ${processesMax + PIDS_RESERVED} >${proc}/sys/kernel/pid_max`,
    `echo ${PIDS_RESERVED} >${proc}/sys/kernel/ns_last_pid`,
  ].join("\n");

/** The command prefix that permanently drops every capability the namespace has granted. */
export const dropRights = (setpriv: string): readonly string[] => [
  ...[setpriv, "--ambient-caps=-all", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"],
];

/** Capabilities that let root remove a mount, or bypass it by file handle, device or kernel module. */
export const UNDOING = ["sys_admin", "dac_read_search", "mknod", "sys_module", "sys_rawio", "sys_ptrace"] as const;

/** The same for root, which keeps its other capabilities. */
export const dropUndoing = (setpriv: string): readonly string[] => [
  ...[setpriv, "--ambient-caps=-all", "--inh-caps=-all"],
  ...[`--bounding-set=${UNDOING.map((name) => `-${name}`).join(",")}`, "--"],
];
