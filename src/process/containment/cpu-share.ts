// Gives commands a lower priority than the server, so that a storm of commands does not delay a stop: a higher
// niceness, and a control group with a small share of the processor for each tree. The groups are needed where the
// kernel divides the processor by session (autogroup) before it considers niceness: a storm of sessions would get more
// than the server.
//
// Only root can make them. Without them a command still has its niceness, and `doctor` reports what is missing.
import { accessSync, constants, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { getPriority, setPriority } from "node:os";
import { join } from "node:path";
import type { Tier } from "../../ports/spawner.ts";
import { COMMAND_NICENESS } from "../limits.ts";
import type { HeldTree, LaunchPlan } from "./containment.ts";

/**
 * `running`: a tenth of the server's share, like COMMAND_NICENESS. `dying`: more, so that other trees do not delay its
 * end.
 */
const SHARES = {
  1: { file: "cpu.shares", running: 102, dying: 4_096 },
  2: { file: "cpu.weight", running: 10, dying: 400 },
} as const;

const PREFIX = "belay.share.";

/** Where a control group with its own share can be made. */
export interface CpuGroups {
  readonly dir: string;
  readonly version: 1 | 2;
}

/** The share of one tree. Nothing here throws: without it the tree keeps its niceness. */
export class CpuShare {
  readonly #dir: string;
  readonly #version: CpuGroups["version"];

  /** Applies to `pid` and to processes it starts later. `name` must be unique among trees. */
  constructor({ dir, version }: CpuGroups, name: string, pid: number) {
    this.#dir = join(dir, `${PREFIX}${name}`);
    this.#version = version;
    tried(() => mkdirSync(this.#dir));
    if (this.#set(SHARES[version].running)) tried(() => write(join(this.#dir, "cgroup.procs"), pid));
  }

  /** Call when the tree has been killed: each of its processes needs the processor once more, to end. */
  hurry(): void {
    this.#set(SHARES[this.#version].dying);
  }

  /** Call when the tree has ended. */
  release(): void {
    tried(() => rmdirSync(this.#dir));
  }

  #set(share: number): boolean {
    return tried(() => write(join(this.#dir, SHARES[this.#version].file), share));
  }
}

export interface LoweredTree {
  readonly held: HeldTree;
  readonly share: CpuShare | undefined;
}

export interface PriorityOptions {
  readonly tier: Tier;
  /** Undefined: trees have no separate share. */
  readonly groups: CpuGroups | undefined;
}

/** The kernel kills such a tree at once. In other tiers a storm keeps forking while it is killed. */
const KILLED_AT_ONCE: ReadonlySet<Tier> = new Set<Tier>(["namespace", "cgroup"]);

/**
 * Lowers the priority of a command. Its children inherit it: the command still waits at its gate, so it has none yet.
 */
export function renice(held: HeldTree, { cookie }: LaunchPlan, { tier, groups }: PriorityOptions): LoweredTree {
  try {
    setPriority(held.pid, Math.max(getPriority(held.pid), COMMAND_NICENESS));
  } catch {
    // Not permitted here, or the process has just died; its end is handled elsewhere.
  }
  if (groups === undefined) return { held, share: undefined };
  const share = new CpuShare(groups, cookie.replace(":", "."), held.pid);
  const force = (): void => {
    held.force();
    if (KILLED_AT_ONCE.has(tier)) share.hurry();
  };
  return { held: { ...held, force }, share };
}

/** Removes groups that a killed server has left. One in use cannot be removed. */
export function removeEmptyShares({ dir }: CpuGroups): void {
  tried(() => {
    for (const name of readdirSync(dir)) if (name.startsWith(PREFIX)) tried(() => rmdirSync(join(dir, name)));
  });
}

/** Whether the kernel divides the processor by session for us, which it does only in the root of the hierarchy. */
export function sharesBySession(self = "/proc/self", sys = "/proc/sys"): boolean {
  if (read(`${sys}/kernel/sched_autogroup_enabled`)?.trim() !== "1") return false;
  const own = placeOf(self);
  return (
    own === undefined || own.path === "/" || (own.version === 2 && read(join(own.dir, "cpu.weight")) === undefined)
  );
}

/** The root of the hierarchy, where it allows groups with a separate share. */
export function findCpuGroups(self = "/proc/self"): CpuGroups | undefined {
  const own = placeOf(self);
  if (own === undefined) return undefined;
  const { mount: dir, version } = own;
  if (version === 2 && !(read(join(dir, "cgroup.subtree_control")) ?? "").split(/\s+/).includes("cpu"))
    return undefined;
  return isWritable(dir) ? { dir, version } : undefined;
}

interface Place {
  readonly version: 1 | 2;
  readonly mount: string;
  readonly path: string;
  readonly dir: string;
}

/** Our group in the hierarchy that divides the processor. */
function placeOf(self: string): Place | undefined {
  const lines = (read(`${self}/cgroup`) ?? "").split("\n").map((line) => line.split(":"));
  const mounts = (read(`${self}/mounts`) ?? "").split("\n").map((line) => line.split(" "));
  const place = (version: 1 | 2, path: string | undefined, mount: string | undefined): Place | undefined =>
    path === undefined || mount === undefined
      ? undefined
      : { version, mount, path, dir: path === "/" ? mount : mount + path };
  const v1 = lines.find(([, controllers = ""]) => controllers.split(",").includes("cpu"));
  if (v1 !== undefined) {
    const mount = mounts.find(([, , kind, options = ""]) => kind === "cgroup" && options.split(",").includes("cpu"));
    return place(1, v1[2], mount?.[1]);
  }
  const v2 = lines.find(([id, controllers]) => id === "0" && controllers === "");
  return place(2, v2?.[2], mounts.find(([, , kind]) => kind === "cgroup2")?.[1]);
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/** Never creates a file: a control group has those that the kernel provides. */
const write = (path: string, value: number): void => writeFileSync(path, String(value), { flag: "r+" });

function tried(act: () => void): boolean {
  try {
    act();
    return true;
  } catch {
    return false;
  }
}
