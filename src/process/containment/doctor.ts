// Diagnoses this machine: the available mechanisms, their test results and limits, and how to get a better one. The
// result is plain data; the caller formats it.
import type { Mechanism, Profile, Tier } from "../../ports/spawner.ts";
import type { ProcessTable } from "../tree/process-table.ts";
import { unenforced } from "./attacks.ts";
import { countsProcesses } from "./cgroup.ts";
import { findCpuGroups, sharesBySession } from "./cpu-share.ts";
import { fixFor } from "./fixes.ts";
import type { Machine } from "./machine.ts";
import { MECHANISMS, type MechanismOptions, makeContainment, TIER_OF } from "./mechanisms.ts";
import { notesOnPlatform, processTableOn } from "./platform.ts";
import type { TestResult } from "./self-test.ts";
import { Tests } from "./tiers.ts";

export interface Finding {
  readonly mechanism: Mechanism;
  readonly tier: Tier;
  /** Whether the programs and kernel features it needs are on this machine. */
  readonly available: boolean;
  /** Whether it ended two hostile trees completely: one that was stopped, and one whose server was killed. */
  readonly test: TestResult;
  readonly profiles: readonly Profile[];
  /** What it does not enforce here. */
  readonly limits: readonly string[];
  /** How to get it, or to make it work. */
  readonly fix: string | undefined;
}

export interface Diagnosis {
  readonly platform: string;
  readonly kernel: string;
  /** The best that works. Undefined: none does. */
  readonly best: Mechanism | undefined;
  /** All of them, best first. */
  readonly mechanisms: readonly Finding[];
  /** Remarks on the machine as a whole. */
  readonly notes: readonly string[];
}

/** Tests every mechanism; with `fresh`, even those that have passed before. */
export async function diagnose(given: MechanismOptions & { readonly fresh?: boolean }): Promise<Diagnosis> {
  const { machine, processTable = processTableOn(machine.platform, given.clock) } = given;
  // One table for all users: a process that one of them has seen, the others know.
  const options: MechanismOptions & { readonly fresh?: boolean } =
    processTable === undefined ? given : { ...given, processTable };
  const tests = new Tests(options);
  const mechanisms: Finding[] = [];
  for (const mechanism of MECHANISMS) {
    const containment = makeContainment(mechanism, options);
    containment?.close?.();
    const test = await tests.of(mechanism);
    mechanisms.push({
      ...{ mechanism, test, tier: TIER_OF[mechanism], available: containment !== undefined },
      profiles: containment?.profiles ?? [],
      limits: limitsOf(mechanism, machine, processTable),
      fix: fixFor(mechanism, machine, test),
    });
  }
  return {
    platform: machine.platform,
    kernel: machine.kernel,
    best: mechanisms.find(({ test }) => test.kind === "passed")?.mechanism,
    mechanisms,
    notes: notesOn(machine),
  };
}

/** What it does not enforce, from the table of attacks and from what this machine lacks. */
function limitsOf(mechanism: Mechanism, machine: Machine, processTable: ProcessTable | undefined): readonly string[] {
  const reach = unenforced(mechanism, mechanism !== "unshare" || machine.programs.mount !== undefined);
  const can = reach.length === 0 ? [] : [`A command can ${reach.join("; or ")}.`, SEPARATE_USER];
  return [...gapsOf(mechanism, machine, processTable), ...can];
}

const SEPARATE_USER = "To keep commands away from Belay, install bubblewrap, or run Belay as a separate user.";

function gapsOf(mechanism: Mechanism, machine: Machine, processTable: ProcessTable | undefined): readonly string[] {
  switch (mechanism) {
    case "bubblewrap":
      return [...capLimits(machine), "sudo and other set-user-ID programs get no rights inside."];
    case "unshare":
      return [...capLimits(machine), 'It has no profile "workspace".'];
    case "cgroup":
      return [
        SEES_ALL,
        ...(machine.cgroup !== undefined && countsProcesses(machine.cgroup) ? [] : [NO_CAP]),
        ...(machine.programs.perl === undefined ? [LEAVES_GROUP] : []),
        "If the server is killed, its trees end a moment later, by a watchdog, or at the next start.",
      ];
    case "anchor":
      return [
        ...[SEES_ALL, NO_CAP],
        "A program that sheds its environment and kills its anchor on purpose escapes. That it may have is reported.",
      ];
    case "group":
      return [
        SEES_ALL,
        NO_CAP,
        ...(processTable?.kind === "ps" ? PS_LEAKS : [SHEDS]),
        "If the server is killed, its trees end a moment later, by a watchdog, or at the next start.",
      ];
  }
}

const SHEDS = "A program that leaves its session, sheds its environment and closes its inherited files escapes.";

/** Without /proc open files cannot be read, and some environments are hidden. */
const PS_LEAKS = [
  "A program that leaves its group and sheds its environment escapes. It is reported, unless it has closed its " +
    "inherited files.",
  "A program that leaves its group escapes if ps does not show its environment: macOS hides that of system programs.",
  "A program that leaves its group and hops from pid to pid faster than ps scans escapes.",
  "Processes are identified by pid and start second: a pid that is reused within a second looks like the same process.",
];

const LEAVES_GROUP =
  "A program that may write to control groups can leave its own and escape. Installing perl prevents that.";
const NO_CAP = "The number of processes of a tree is not capped.";
const SEES_ALL = "Processes see each other, and the server: keep secrets out of the server's environment.";

function capLimits({ capsPerNamespace, root, programs }: Machine): readonly string[] {
  if (!capsPerNamespace) return [`${NO_CAP} A cap requires Linux 6.14.`];
  if (root) {
    return [
      'As root, the cap on processes is a guard against accidents only, except in "workspace".',
      'As root, a command reaches devices and kernel settings, and through them everything, except in "workspace".',
    ];
  }
  return programs.setpriv === undefined ? [`${NO_CAP} A cap requires setpriv: apt-get install util-linux.`] : [];
}

const BY_SESSION =
  "The kernel shares the processor by session here, whatever the niceness: commands that make hundreds of " +
  "sessions can delay a stop by seconds. Use sysctl -w kernel.sched_autogroup_enabled=0, or start Belay as a service " +
  "of systemd.";

function notesOn({ platform, programs }: Machine): readonly string[] {
  return [
    ...notesOnPlatform(platform),
    ...(process.pid === 1
      ? ["The server is the first process here and does not reap others: use --init, or tini."]
      : []),
    ...(platform === "linux" && sharesBySession() && findCpuGroups() === undefined ? [BY_SESSION] : []),
    ...(platform === "linux" && programs.script === undefined
      ? ["No terminals: `script` is missing (apt-get install bsdutils)."]
      : []),
  ];
}
