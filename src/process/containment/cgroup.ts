// Containment by a control group of its own for each tree: one write ends everybody in it, whatever they have done to
// their sessions, groups and environments.
//
// Who may write to the files of control groups, as root may, can move itself to another one. So the leader is an anchor
// where there is perl: it stays outside of the group, and what leaves the group is still below it (`anchor.ts`).
//
// The kernel does not end a control group with the server. The anchor does; what it cannot is ended by the watchdog,
// and if that has died too, by the next server, which finds the group in the ledger.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ControlError } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import { quote } from "../launch/command-line.ts";
import { gateArguments, leaderScript, SHELL } from "../launch/gate.ts";
import { FORCE_WAIT_MS, LEFTOVERS_MAX } from "../limits.ts";
import { MarkedTree } from "../tree/marked-tree.ts";
import { askGroup, askTerminal } from "../tree/polite-signal.ts";
import { until } from "../tree/poll-until.ts";
import { childrenOf, identityOf, statOf } from "../tree/proc.ts";
import type { SharedScan } from "../tree/shared-scan.ts";
import { send, sendGroup } from "../tree/signal.ts";
import type { Watchdog } from "../tree/watchdog.ts";
import { anchor } from "./anchor.ts";
import type { Containment, HeldTree, LaunchPlan, Leader, Wrapped } from "./containment.ts";

export interface CgroupOptions {
  /** The directory in which the groups of trees are made. */
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
  letCount(options.parent);
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

/** The cookie's random part makes the name one that was never used. */
const pathOf = (parent: string, plan: LaunchPlan): string => join(parent, `belay.${plan.cookie.replace(":", ".")}`);

/** How the leader ends if it cannot join its group. */
const NOT_JOINED = 126;

/** The line that enters the group. */
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

/** The anchor holds what has left the group, and the group what has killed the anchor. */
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
  { parent, watchdog, sharedScan: census, clock }: CgroupOptions,
): HeldTree {
  const { identity } = leader;
  const path = pathOf(parent, plan);
  const [pid] = childrenOf(identity.pid);
  const command = pid === undefined ? undefined : identityOf(pid);
  if (command === undefined) throw new Error("The tree has ended before it was held.");
  const marked = new MarkedTree(leader, plan.cookie, { sharedScan: census, clock });
  const { livenessLink } = marked;
  const forget = watchdog.watch({ pid: identity.pid, cookie: plan.cookie, livenessLink, cgroup: path });
  return {
    pid: command.pid,
    identity,
    ask: () => {
      if (plan.terminal) askTerminal(command);
      else askGroup(identity);
    },
    force: () => {
      if (!write(`${path}/cgroup.kill`, "1")) sendGroup(identity, "SIGKILL");
    },
    left: (max) => {
      const others = membersOf(path).filter((one) => one !== command.pid && one !== identity.pid);
      return others.slice(0, max).flatMap((one) => {
        const stat = statOf(one);
        return typeof stat === "string" ? [] : [{ pid: one, asked: stat.group === identity.pid }];
      });
    },
    verify: async (waitMs, wakes) => {
      const end = clock.elapsed() + waitMs;
      const empty = await until(endOf(path), { clock, waitMs, wakes });
      if (!empty) return { killed: 0, left: membersOf(path) };
      // Who may write to the group's parent can leave it. One look, because nobody else can be there.
      const verified = await marked.end(Math.max(end - clock.elapsed(), LOOK_MS_MIN), 1);
      if (verified.left.length === 0) forget();
      return verified;
    },
  };
}

/** What one look at everybody may take. */
const LOOK_MS_MIN = 100;

/**
 * Ends a control group that an earlier server or a start that failed has left, and removes it. A process that has
 * closed its pipes is a member until the kernel has taken it out, so this waits, and rejects if a member is left.
 */
export async function endCgroup(path: string | undefined, clock: Clock): Promise<void> {
  if (path === undefined || !existsSync(path)) return;
  write(`${path}/cgroup.kill`, "1");
  await until(endOf(path), { clock, waitMs: FORCE_WAIT_MS });
  removeTree(path);
  if (existsSync(path)) throw new Error(`${path} still has members.`);
}

/** Asks the kernel to count the processes of groups in this directory. It may refuse; doctor tells. */
function letCount(parent: string): void {
  write(`${parent}/cgroup.subtree_control`, "+pids");
}

/** Whether trees in this directory can be capped. */
export const countsProcesses = (parent: string): boolean =>
  (read(`${parent}/cgroup.subtree_control`) ?? "").split(/\s+/).includes("pids");

/**
 * A look whether no process is left. Each that is gets a signal: `cgroup.kill` passes over a process whose first thread
 * has ended while others go on. Each is looked up again after its identity, so that no stranger has its pid by then.
 * One look is at a few, and the next one at those that follow.
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

/** Also counts groups that were made below. A group that is gone has nobody. */
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
    // Never made: a group has the files the kernel gives it.
    writeFileSync(path, text, { flag: "r+" });
    return true;
  } catch {
    return false;
  }
}
