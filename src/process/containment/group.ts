// Containment by a process group, for machines that offer nothing better.
//
// The leader is our own shell, which outlives the command, so that the group's number stays ours for as long as it may
// be signalled. Processes that leave the group are found by their marks (`marked-tree.ts`); if the server dies, the
// watchdog ends them.
import type { Clock } from "../../ports/clock.ts";
import { gateArguments, leaderScript, SHELL } from "../launch/gate.ts";
import { MarkedTree } from "../tree/marked-tree.ts";
import { sigtermGroup, sigtermTerminal } from "../tree/polite-signal.ts";
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
  { watchdog, sharedScan, clock, processTable }: GroupOptions,
): HeldTree {
  const { identity } = leader;
  const [pid] = processTable.childrenOf(identity.pid);
  const command = pid === undefined ? undefined : processTable.identityOf(pid);
  if (command === undefined) throw new Error("The tree has ended before it was held.");
  const marked = new MarkedTree(leader, plan.cookie, { sharedScan, clock, processTable });
  const { livenessLink } = marked;
  const { pid: leaderPid, startTime } = identity;
  const forget = watchdog.watch({ pid: leaderPid, startTime, cookie: plan.cookie, livenessLink, cgroup: undefined });
  const means = processTable.means(leader);
  const refresh = processTable.refresh?.bind(processTable);
  return {
    pid: command.pid,
    identity,
    sendSigterm: () => {
      if (plan.terminal) sigtermTerminal(command);
      else sigtermGroup(identity, means);
    },
    force: () => {
      sendGroup(identity, "SIGKILL", means);
    },
    ...(refresh === undefined ? {} : { refresh }),
    left: () => marked.companions(command.pid),
    members: async () => (await marked.find()).filter(({ pid }) => pid !== command.pid && pid !== leaderPid),
    verify: async (waitMs) => {
      const verified = await marked.end(waitMs);
      if (verified.left.length === 0) forget();
      return verified;
    },
  };
}
