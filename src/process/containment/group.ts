// Containment by a process group, for machines that offer nothing better.
//
// The leader is a shell of ours that outlives the command, so that the number of the group stays ours for as long as
// somebody might be signalled by it. Whoever leaves the group is found by what it carries (`marked-tree.ts`); if the
// server dies, the watchdog looks for it.
import type { Clock } from "../../ports/clock.ts";
import { gateArguments, leaderScript, SHELL } from "../launch/gate.ts";
import { MarkedTree } from "../tree/marked-tree.ts";
import { askGroup, askTerminal } from "../tree/polite-signal.ts";
import type { ProcessTable } from "../tree/process-table.ts";
import type { SharedScan } from "../tree/shared-scan.ts";
import { sendGroup } from "../tree/signal.ts";
import type { Watchdog } from "../tree/watchdog.ts";
import type { Containment, HeldTree, LaunchPlan, Leader } from "./containment.ts";

export interface GroupOptions {
  readonly watchdog: Watchdog;
  readonly sharedScan: SharedScan;
  readonly clock: Clock;
  readonly processTable: ProcessTable;
}

export function group(options: GroupOptions): Containment {
  return {
    mechanism: "group",
    tier: "group",
    profiles: ["none"],
    wrap: (plan) => ({ file: SHELL, args: ["-c", leaderScript(), "belay", ...gateArguments(plan)] }),
    hold: (leader, plan) => holdGroup(leader, plan, options),
    close: () => options.watchdog.close(),
  };
}

function holdGroup(
  leader: Leader,
  plan: LaunchPlan,
  { watchdog, sharedScan: census, clock, processTable: sight }: GroupOptions,
): HeldTree {
  const { identity } = leader;
  const [pid] = sight.childrenOf(identity.pid);
  const command = pid === undefined ? undefined : sight.identityOf(pid);
  if (command === undefined) throw new Error("The tree has ended before it was held.");
  const marked = new MarkedTree(leader, plan.cookie, { sharedScan: census, clock, processTable: sight });
  const { livenessLink } = marked;
  const { pid: leaderPid, startTime } = identity;
  const forget = watchdog.watch({ pid: leaderPid, startTime, cookie: plan.cookie, livenessLink, cgroup: undefined });
  const means = sight.means(leader);
  const look = sight.look?.bind(sight);
  return {
    pid: command.pid,
    identity,
    ask: () => {
      if (plan.terminal) askTerminal(command);
      else askGroup(identity, means);
    },
    force: () => {
      sendGroup(identity, "SIGKILL", means);
    },
    ...(look === undefined ? {} : { look }),
    left: () => marked.companions(command.pid),
    members: async () => (await marked.find()).filter(({ pid }) => pid !== command.pid && pid !== leaderPid),
    verify: async (waitMs) => {
      const verified = await marked.end(waitMs);
      if (verified.left.length === 0) forget();
      return verified;
    },
  };
}
