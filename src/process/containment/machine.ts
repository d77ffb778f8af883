// What this machine offers for containment: programs, privileges and kernel features.
import { accessSync, constants, readFileSync } from "node:fs";
import { release } from "node:os";
import { findProgram } from "../launch/program-lookup.ts";
import { countsPerNamespace } from "../tree/namespace-tree.ts";

const PROGRAMS = ["bwrap", "setpriv", "unshare", "setsid", "mount", "umount", "perl", "ps", "script", "stty"] as const;

export interface Machine {
  readonly platform: NodeJS.Platform;
  readonly kernel: string;
  readonly root: boolean;
  /** Whether namespaces other than of users may be made without one of users. */
  readonly mayUnshare: boolean;
  /** Whether the kernel caps processes per PID namespace. */
  readonly capsPerNamespace: boolean;
  readonly programs: Readonly<Partial<Record<(typeof PROGRAMS)[number], string>>>;
  /** A cgroup v2 directory in which we may create groups. */
  readonly cgroup: string | undefined;
}

/**
 * `cgroup`: the directory that was delegated to us, if configured; otherwise our own, if delegated. `self`: our
 * directory in /proc.
 */
export function lookAtMachine(cgroup?: string, self = "/proc/self"): Machine {
  const root = process.getuid?.() === 0;
  return {
    platform: process.platform,
    kernel: release(),
    root,
    mayUnshare: hasCapability(CAP_SYS_ADMIN, self),
    capsPerNamespace: process.platform === "linux" && countsPerNamespace(release()),
    programs: Object.fromEntries(
      PROGRAMS.flatMap((name) => {
        const path = findProgram(name);
        return path === undefined ? [] : [[name, path]];
      }),
    ),
    cgroup: cgroup ?? ownCgroup(self),
  };
}

const CAP_SYS_ADMIN = 21;

function hasCapability(number: number, self: string): boolean {
  const [, hex] = /^CapEff:\s*([0-9a-f]+)$/m.exec(read(`${self}/status`) ?? "") ?? [];
  return hex !== undefined && ((BigInt(`0x${hex}`) >> BigInt(number)) & 1n) === 1n;
}

/** Our own cgroup v2 directory, if we may create groups in it and move ourselves there. */
function ownCgroup(self: string): string | undefined {
  const [, path] = /^0::(\/.*)$/m.exec(read(`${self}/cgroup`) ?? "") ?? [];
  if (path === undefined) return undefined;
  const mounts = (read(`${self}/mounts`) ?? "").split("\n").map((line) => line.split(" "));
  for (const [, mount, kind] of mounts) {
    if (kind !== "cgroup2" || mount === undefined) continue;
    const dir = path === "/" ? mount : mount + path;
    if (isWritable(dir) && isWritable(`${dir}/cgroup.procs`)) return dir;
  }
  return undefined;
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
