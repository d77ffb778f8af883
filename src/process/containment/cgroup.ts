// Containment by a control group for each tree: one write ends every process in it, whatever it has done to its
// session, group and environment.
//
// A process that may write to the files of control groups, such as root's, can move itself to another one. So the
// leader is an anchor where there is perl: it stays outside of the group, and processes that leave the group are still
// below it (`anchor.ts`).
//
// The kernel does not end a control group with the server. The anchor does, then the watchdog, and if that has died
// too, the next server, which finds the group in the ledger.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ControlError } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import { quote } from "../launch/command-line.ts";
import { gateArguments, leaderScript, SHELL } from "../launch/gate.ts";
import { FORCE_WAIT_MS, LEFTOVERS_MAX } from "../limits.ts";
import { MarkedTree } from "../tree/marked-tree.ts";
import { sigtermGroup, sigtermTerminal } from "../tree/polite-signal.ts";
import { until } from "../tree/poll-until.ts";
import { childrenOf, identityOf, statOf } from "../tree/proc.ts";
import type { SharedScan } from "../tree/shared-scan.ts";
import { send, sendGroup } from "../tree/signal.ts";
import type { Watchdog } from "../tree/watchdog.ts";
import { anchor } from "./anchor.ts";
import type { Containment, HeldTree, LaunchPlan, Leader, Wrapped } from "./containment.ts";

export interface CgroupOptions {
  /** The directory in which the groups of trees are created. */
  readonly parent: string;
  readonly setpriv: string | undefined;
  /** For the anchor. Without it, the leader is a shell inside the group. */
  readonly perl: string | undefined;
  readonly arch: NodeJS.Architecture;
  readonly watchdog: Watchdog;
  readonly sharedScan: SharedScan;
  readonly clock: Clock;
}

export function cgroup(options: CgroupOptions): Containment {
  enableCounting(options.parent);
  const { perl } = options;
  const joining = (plan: LaunchPlan): readonly string[] => [SHELL, "-c", `${enter(options, plan)}\nexec "$@"`, "belay"];
  const anchored = perl === undefined ? undefined : anchor({ ...options, perl }, joining);
  return {
    mechanism: "cgroup",
    tier: "cgroup",
    profiles: ["none"],
    wrap: (plan) => ({ ...group(options, plan), ...(anchored?.wrap(plan) ?? shellLeader(options, plan)) }),
    hold: (leader, plan) =>
      anchored === undefined
        ? holdCgroup(leader, plan, options)
        : holdAnchored(leader, plan, options, anchored.hold(leader, plan)),
    close: () => options.watchdog.close(),
  };
}

/** The cookie's random part makes the name unique. */
const pathOf = (parent: string, plan: LaunchPlan): string => join(parent, `belay.${plan.cookie.replace(":", ".")}`);

/** Exit code of a leader that cannot join its group. */
const NOT_JOINED = 126;

/** The shell line that enters the group. */
const enter = ({ parent }: CgroupOptions, plan: LaunchPlan): string =>
  `echo 0 >${quote([`${pathOf(parent, plan)}/cgroup.procs`])} || exit ${NOT_JOINED}`;

function shellLeader(options: CgroupOptions, plan: LaunchPlan): Pick<Wrapped, "file" | "args"> {
  const { setpriv } = options;
  const shell = [SHELL, "-c", leaderScript(enter(options, plan)), "belay", ...gateArguments(plan)] as const;
  const [file, ...args] = setpriv === undefined ? shell : ([setpriv, "--pdeathsig", "KILL", "--", ...shell] as const);
  return { file, args };
}

function group({ parent }: CgroupOptions, plan: LaunchPlan): Omit<Wrapped, "file" | "args"> {
  const path = pathOf(parent, plan);
  return {
    cgroup: path,
    prepare: () => {
      try {
        mkdirSync(path);
      } catch (error) {
        throw new ControlError("not_started", `No control group could be made for ${plan.id} in ${parent}.`, {
          cause: error,
        });
      }
      write(join(path, "pids.max"), String(plan.limits.processesMax));
    },
    release: () => removeTree(path),
  };
}

/** The anchor holds processes that leave the group, and the group those that kill the anchor. */
function holdAnchored(leader: Leader, plan: LaunchPlan, options: CgroupOptions, held: HeldTree): HeldTree {
  const { clock, watchdog, parent } = options;
  const path = pathOf(parent, plan);
  const livenessLink = undefined;
  const forget = watchdog.watch({ pid: leader.identity.pid, cookie: plan.cookie, livenessLink, cgroup: path });
  return {
    ...held,
    force: () => {
      write(`${path}/cgroup.kill`, "1");
      held.force();
    },
    verify: async (waitMs, wakes) => {
      const end = clock.elapsed() + waitMs;
      const [verified, empty] = await Promise.all([
        held.verify(waitMs, wakes),
        until(endOf(path), { clock, waitMs: end - clock.elapsed(), wakes }),
      ]);
      if (!empty) return { killed: verified.killed, left: membersOf(path) };
      if (verified.left.length === 0 || verified.unverified === true) forget();
      return verified;
    },
  };
}

function holdCgroup(
  leader: Leader,
  plan: LaunchPlan,
  { parent, watchdog, sharedScan, clock }: CgroupOptions,
): HeldTree {
  const { identity } = leader;
  const path = pathOf(parent, plan);
  const [pid] = childrenOf(identity.pid);
  const command = pid === undefined ? undefined : identityOf(pid);
  if (command === undefined) throw new Error("The tree has ended before it was held.");
  const marked = new MarkedTree(leader, plan.cookie, { sharedScan, clock });
  const { livenessLink } = marked;
  const forget = watchdog.watch({ pid: identity.pid, cookie: plan.cookie, livenessLink, cgroup: path });
  return {
    pid: command.pid,
    identity,
    sendSigterm: () => {
      if (plan.terminal) sigtermTerminal(command);
      else sigtermGroup(identity);
    },
    force: () => {
      if (!write(`${path}/cgroup.kill`, "1")) sendGroup(identity, "SIGKILL");
    },
    left: (max) => {
      const others = membersOf(path).filter((one) => one !== command.pid && one !== identity.pid);
      return others.slice(0, max).flatMap((one) => {
        const stat = statOf(one);
        return typeof stat === "string" ? [] : [{ pid: one, signalled: stat.group === identity.pid }];
      });
    },
    verify: async (waitMs, wakes) => {
      const end = clock.elapsed() + waitMs;
      const empty = await until(endOf(path), { clock, waitMs, wakes });
      if (!empty) return { killed: 0, left: membersOf(path) };
      // A process that may write to the group's parent can have left it. One scan, because no other process is in
      // question.
      const verified = await marked.end(Math.max(end - clock.elapsed(), SCAN_MS_MIN), 1);
      if (verified.left.length === 0) forget();
      return verified;
    },
  };
}

/** The time one scan may take. */
const SCAN_MS_MIN = 100;

/**
 * Ends and removes a control group that an earlier server or a failed start has left. A process that has closed its
 * pipes stays a member until the kernel has removed it, so this waits, and rejects if a member is left.
 */
export async function endCgroup(path: string | undefined, clock: Clock): Promise<void> {
  if (path === undefined || !existsSync(path)) return;
  write(`${path}/cgroup.kill`, "1");
  await until(endOf(path), { clock, waitMs: FORCE_WAIT_MS });
  removeTree(path);
  if (existsSync(path)) throw new Error(`${path} still has members.`);
}

/** Makes the kernel count the processes of groups in this directory. It may refuse; `doctor` reports that. */
function enableCounting(parent: string): void {
  write(`${parent}/cgroup.subtree_control`, "+pids");
}

/** Whether trees in this directory can be capped. */
export const countsProcesses = (parent: string): boolean =>
  (read(`${parent}/cgroup.subtree_control`) ?? "").split(/\s+/).includes("pids");

/**
 * A check whether no process is left. Each one that is gets SIGKILL, because `cgroup.kill` misses a process whose first
 * thread has ended while others run. Each is listed again after reading its identity, so that no unrelated process has
 * its pid by then. One check handles a few members, and the next one those that follow.
 */
function endOf(path: string): () => boolean {
  let from = 0;
  return () => {
    if (!isPopulated(path)) return true;
    const all = membersOf(path);
    if (from >= all.length) from = 0;
    const members = all.slice(from, from + LEFTOVERS_MAX).flatMap((pid) => identityOf(pid) ?? []);
    from += LEFTOVERS_MAX;
    const still = new Set(membersOf(path));
    for (const one of members) if (still.has(one.pid)) send(one, "SIGKILL");
    return false;
  };
}

/** Includes groups below it. A missing group has no process. */
const isPopulated = (path: string): boolean => /^populated 1$/m.test(read(`${path}/cgroup.events`) ?? "");

function membersOf(path: string): readonly number[] {
  const own = (read(`${path}/cgroup.procs`) ?? "").split("\n").filter(Boolean).map(Number);
  return [...own, ...directoriesIn(path).flatMap(membersOf)];
}

function removeTree(path: string): void {
  for (const below of directoriesIn(path)) removeTree(below);
  try {
    rmdirSync(path);
  } catch {
    // Gone, or not empty: then it stays in the ledger for the next server.
  }
}

function directoriesIn(path: string): readonly string[] {
  try {
    return readdirSync(path, { withFileTypes: true }).flatMap((one) =>
      one.isDirectory() ? [join(path, one.name)] : [],
    );
  } catch {
    return [];
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function write(path: string, text: string): boolean {
  try {
    // Never creates the file: a group has the files that the kernel provides.
    writeFileSync(path, text, { flag: "r+" });
    return true;
  } catch {
    return false;
  }
}
