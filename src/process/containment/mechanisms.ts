// Which mechanisms there are, best first, and how each is made on a given machine.
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

/** Whether a tree of this tier dies as surely as one of the other, or more so. */
export const isAtLeast = (tier: Tier, wanted: Tier): boolean => TIERS.indexOf(tier) <= TIERS.indexOf(wanted);

export type PathList = readonly string[] | (() => readonly string[]);

export interface Surroundings {
  readonly machine: Machine;
  readonly stateDir: string;
  /** What no process sees, where the mechanism can hide something. A function is called for each process. */
  readonly hidden?: PathList;
  /** What no process changes, where the mechanism can see to that. */
  readonly readOnly?: readonly string[];
  readonly workspace: string;
  readonly clock: Clock;
  /** How processes are seen. Default as this platform has it. */
  readonly processTable?: ProcessTable;
  readonly onNotice?: (text: string) => void;
  /** Whether a mechanism works here. Default: it is tried out (`self-test.ts`). */
  readonly test?: (mechanism: Mechanism) => Promise<TestResult>;
}

/** Undefined: this machine lacks what it is made of. Whether it works is another question (`self-test.ts`). */
export function makeContainment(mechanism: Mechanism, around: Surroundings): Containment | undefined {
  const { machine, clock, processTable: sight = processTableOn(machine.platform, clock) } = around;
  if (sight?.kind !== "proc")
    return mechanism === "group" && sight !== undefined ? makePsGroup(around, sight) : undefined;
  const { setpriv, perl } = machine.programs;
  switch (mechanism) {
    case "bubblewrap":
      return makeBubblewrap(around);
    case "unshare":
      return makeUnshare(around);
    case "cgroup":
      return machine.cgroup === undefined
        ? undefined
        : cgroup({
            ...{ parent: machine.cgroup, setpriv, perl, arch: process.arch, clock },
            ...{ watchdog: makeWatchdog(around), sharedScan: new SharedScan() },
          });
    case "anchor":
      return perl === undefined ? undefined : anchor({ perl, arch: process.arch, sharedScan: new SharedScan(), clock });
    case "group":
      return group({ watchdog: makeWatchdog(around), sharedScan: new SharedScan(), clock, processTable: sight });
  }
}

/** All that is to be had without /proc. */
function makePsGroup({ clock, onNotice }: Surroundings, processTable: ProcessTable): Containment {
  const watchdog = new Watchdog(onNotice ?? (() => undefined), processTable.watchdogKind);
  return group({ watchdog, sharedScan: new SharedScan(() => processTable.listProcesses()), clock, processTable });
}

function makeBubblewrap(around: Surroundings): Containment | undefined {
  const { machine, clock } = around;
  const { bwrap, setpriv, umount } = machine.programs;
  if (bwrap === undefined) return undefined;
  return bubblewrap({
    ...{ bwrap, setpriv, umount, clock, protects: () => protectedPaths(around) },
    userNamespace: !machine.mayUnshare,
    root: machine.root,
    caps: machine.capsPerNamespace,
  });
}

function makeUnshare(around: Surroundings): Containment | undefined {
  const { machine, clock } = around;
  const { unshare: program, setpriv, setsid, mount } = machine.programs;
  if (program === undefined || setpriv === undefined || setsid === undefined) return undefined;
  return unshare({
    ...{ unshare: program, setpriv, setsid, mount, clock, protects: () => protectedPaths(around) },
    userNamespace: !machine.mayUnshare,
    caps: machine.capsPerNamespace,
  });
}

const makeWatchdog = ({ onNotice }: Surroundings): Watchdog => new Watchdog(onNotice ?? (() => undefined));

/** The directories of a state directory. Where that is the workspace too, they alone are hidden. */
const OWN_DIRECTORIES = ["ledger", "output"];

/** What a contained process must not see or change, at this moment, and the workspace, if it lies inside. */
function protectedPaths({ stateDir, workspace, hidden = [], readOnly = [] }: Surroundings): ProtectedPaths {
  const home = realPath(workspace);
  const isShared = home !== undefined && realPath(stateDir) === home;
  const own = isShared ? OWN_DIRECTORIES.map((name) => join(stateDir, name)) : [stateDir];
  const all = [...own, ...(typeof hidden === "function" ? hidden() : hidden)];
  const around = all.flatMap((path) => realPath(path) ?? []).filter(isDirectory);
  const isInside = home !== undefined && around.some((path) => path !== home && isWithin(path, home));
  return { hidden: all, readOnly, exposed: isInside ? home : undefined };
}
