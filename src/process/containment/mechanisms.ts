// All mechanisms, best first, and how each is made on a given machine.
import { join } from "node:path";
import type { Clock } from "../../ports/clock.ts";
import type { Mechanism, Tier } from "../../ports/spawner.ts";
import { isWithin } from "../launch/working-directory.ts";
import type { ProcessTable } from "../tree/process-table.ts";
import { SharedScan } from "../tree/shared-scan.ts";
import { Watchdog } from "../tree/watchdog.ts";
import { anchor } from "./anchor.ts";
import { bubblewrap } from "./bubblewrap.ts";
import { cgroup } from "./cgroup.ts";
import type { Containment } from "./containment.ts";
import { group } from "./group.ts";
import { isDirectory, type ProtectedPaths, realPath } from "./hidden-paths.ts";
import type { Machine } from "./machine.ts";
import { processTableOn } from "./platform.ts";
import type { TestResult } from "./self-test.ts";
import { unshare } from "./unshare.ts";

export const MECHANISMS: readonly Mechanism[] = ["bubblewrap", "unshare", "cgroup", "anchor", "group"];

export const TIERS: readonly Tier[] = ["namespace", "cgroup", "anchor", "group"];

export const TIER_OF: Readonly<Record<Mechanism, Tier>> = {
  bubblewrap: "namespace",
  unshare: "namespace",
  cgroup: "cgroup",
  anchor: "anchor",
  group: "group",
};

/** Whether a tree of this tier ends at least as reliably as one of the other. */
export const isAtLeast = (tier: Tier, wanted: Tier): boolean => TIERS.indexOf(tier) <= TIERS.indexOf(wanted);

export type PathList = readonly string[] | (() => readonly string[]);

export interface MechanismOptions {
  readonly machine: Machine;
  readonly stateDir: string;
  /** Paths that no process sees, where the mechanism can hide them. A function is called for each process. */
  readonly hidden?: PathList;
  /** Paths that no process can change, where the mechanism can enforce it. */
  readonly readOnly?: readonly string[];
  readonly workspace: string;
  readonly clock: Clock;
  /** Default: the process table of this platform. */
  readonly processTable?: ProcessTable;
  readonly onNotice?: (text: string) => void;
  /** Tests whether a mechanism works here. Default: the self-test (`self-test.ts`). */
  readonly test?: (mechanism: Mechanism) => Promise<TestResult>;
}

/** Undefined: this machine lacks what it needs. Whether it works is for the self-test to find out (`self-test.ts`). */
export function makeContainment(mechanism: Mechanism, options: MechanismOptions): Containment | undefined {
  const { machine, clock, processTable = processTableOn(machine.platform, clock) } = options;
  if (processTable?.kind !== "proc")
    return mechanism === "group" && processTable !== undefined ? makePsGroup(options, processTable) : undefined;
  const { setpriv, perl } = machine.programs;
  switch (mechanism) {
    case "bubblewrap":
      return makeBubblewrap(options);
    case "unshare":
      return makeUnshare(options);
    case "cgroup":
      return machine.cgroup === undefined
        ? undefined
        : cgroup({
            ...{ parent: machine.cgroup, setpriv, perl, arch: process.arch, clock },
            ...{ watchdog: makeWatchdog(options), sharedScan: new SharedScan() },
          });
    case "anchor":
      return perl === undefined ? undefined : anchor({ perl, arch: process.arch, sharedScan: new SharedScan(), clock });
    case "group":
      return group({ watchdog: makeWatchdog(options), sharedScan: new SharedScan(), clock, processTable });
  }
}

/** The only mechanism without /proc. */
function makePsGroup({ clock, onNotice }: MechanismOptions, processTable: ProcessTable): Containment {
  const watchdog = new Watchdog(onNotice ?? (() => undefined), processTable.watchdogKind);
  return group({ watchdog, sharedScan: new SharedScan(() => processTable.listProcesses()), clock, processTable });
}

function makeBubblewrap(options: MechanismOptions): Containment | undefined {
  const { machine, clock } = options;
  const { bwrap, setpriv, umount } = machine.programs;
  if (bwrap === undefined) return undefined;
  return bubblewrap({
    ...{ bwrap, setpriv, umount, clock, protects: () => protectedPaths(options) },
    userNamespace: !machine.mayUnshare,
    root: machine.root,
    caps: machine.capsPerNamespace,
  });
}

function makeUnshare(options: MechanismOptions): Containment | undefined {
  const { machine, clock } = options;
  const { unshare: program, setpriv, setsid, mount } = machine.programs;
  if (program === undefined || setpriv === undefined || setsid === undefined) return undefined;
  return unshare({
    ...{ unshare: program, setpriv, setsid, mount, clock, protects: () => protectedPaths(options) },
    userNamespace: !machine.mayUnshare,
    caps: machine.capsPerNamespace,
  });
}

const makeWatchdog = ({ onNotice }: MechanismOptions): Watchdog => new Watchdog(onNotice ?? (() => undefined));

/** The directories of a state directory. Where that is the workspace too, only these are hidden. */
const OWN_DIRECTORIES = ["ledger", "output"];

/** The paths a contained process must not see or change now, and the workspace, if it lies inside. */
function protectedPaths({ stateDir, workspace, hidden = [], readOnly = [] }: MechanismOptions): ProtectedPaths {
  const home = realPath(workspace);
  const isShared = home !== undefined && realPath(stateDir) === home;
  const own = isShared ? OWN_DIRECTORIES.map((name) => join(stateDir, name)) : [stateDir];
  const all = [...own, ...(typeof hidden === "function" ? hidden() : hidden)];
  const hiddenDirectories = all.flatMap((path) => realPath(path) ?? []).filter(isDirectory);
  const isInside = home !== undefined && hiddenDirectories.some((path) => path !== home && isWithin(path, home));
  return { hidden: all, readOnly, exposed: isInside ? home : undefined };
}
