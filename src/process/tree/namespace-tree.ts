// A tree in a PID namespace of its own: the kernel ends all of it when its first process ends, and keeps that first
// process until everybody else is gone. So the end of one process, which we can prove, is the end of all.
//
// The chain, as this machine counts: leader (bwrap or unshare, our child) → first process of the namespace → command.
// The kernel ends the first process when the leader dies, and the leader when the server does.
import type { Clock } from "../../ports/clock.ts";
import type { HeldTree, LaunchPlan, Leader, Leftover, Verified } from "../containment/containment.ts";
import { DESCENDANTS_MAX } from "../limits.ts";
import { askGroup, askTerminal } from "./polite-signal.ts";
import { until } from "./poll-until.ts";
import { childrenOf, descendantsOf, type Identity, identityOf, PROC, presenceOf, statOf } from "./proc.ts";
import { sendGroup } from "./signal.ts";

/** What every namespace keeps back when it begins to count anew. Without these on top, the cap would shrink. */
const PIDS_RESERVED = 300;

/** Throws if the chain is not there: then something has died, and its leader's words say why. */
export function holdNamespace(leader: Leader, plan: LaunchPlan, clock: Clock): HeldTree {
  const first = onlyChildOf(leader.identity.pid);
  const command = onlyChildOf(first.pid);
  return {
    pid: command.pid,
    identity: first,
    ask: () => {
      if (plan.terminal) askTerminal(command);
      // The first process leads the group of the command. It is not hurt by it: the kernel gives the first process of a
      // namespace no signal from inside or outside that would end it, except one.
      else askGroup(first);
    },
    force: () => {
      // First, so that it cannot comment on the others' death: its stderr is the command's. The kernel ends the first
      // process with it, and everybody else with that.
      leader.kill("SIGKILL");
      // The same, at once: most trees are in one group, and are dead with this.
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
  // The command, and `max` others.
  const pids = descendantsOf(first.pid, PROC, max + 1).filter((pid) => pid !== command);
  return pids.slice(0, max).flatMap((pid) => {
    const stat = statOf(pid);
    return typeof stat === "string" ? [] : [{ pid, asked: stat.group === first.pid }];
  });
}

function onlyChildOf(pid: number): Identity {
  const [child] = childrenOf(pid);
  const identity = child === undefined ? undefined : identityOf(child);
  if (identity === undefined) throw new Error("The tree has ended before it was held.");
  return identity;
}

/**
 * Whether the kernel counts pids per namespace (since 6.14). Before that the setting is the whole machine's, and must
 * not be touched.
 */
export function countsPerNamespace(release: string): boolean {
  const [major = 0, minor = 0] = release.split(/[.-]/).map(Number);
  return major > 6 || (major === 6 && minor >= 14);
}

/**
 * The lines of the leader that cap the tree. Numbers start behind the reserved ones, or those would be on top of the
 * cap until all are used up. What cannot be capped is started all the same: doctor tells.
 */
export const capLine = (processesMax: number, proc = "/proc"): string =>
  [
    `echo ${processesMax + PIDS_RESERVED} >${proc}/sys/kernel/pid_max`,
    `echo ${PIDS_RESERVED} >${proc}/sys/kernel/ns_last_pid`,
  ].join("\n");

/** The program, and its arguments, that gives up every right a namespace has brought, for good. */
export const dropRights = (setpriv: string): readonly string[] => [
  ...[setpriv, "--ambient-caps=-all", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"],
];

/** What lets root remove a mount, or reach what is below it another way: by file handle, device or the kernel. */
export const UNDOING = ["sys_admin", "dac_read_search", "mknod", "sys_module", "sys_rawio", "sys_ptrace"] as const;

/** The same for root, which keeps the other rights. */
export const dropUndoing = (setpriv: string): readonly string[] => [
  ...[setpriv, "--ambient-caps=-all", "--inh-caps=-all"],
  ...[`--bounding-set=${UNDOING.map((name) => `-${name}`).join(",")}`, "--"],
];
