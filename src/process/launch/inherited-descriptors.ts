// Starts children with exactly the file descriptors that they are given.
//
// A descriptor that this program has inherited without close-on-exec would pass to its children in turn, and one that
// is open on a directory leads out of every mount namespace. A child gets /dev/null in the place of each of them, and
// its gate (`gate.ts`) verifies that. This program keeps them, because a host may use what it was given, except those
// above the limit on open files, which cannot be covered.
//
// Node opens everything close-on-exec. Other descriptors existed before Node, or were opened by native code of the
// host. The former are looked up once; if there are others, the gate refuses to start the command.
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { closeSync, openSync, readdirSync, readFileSync } from "node:fs";
import { devNull } from "node:os";
import { openFilesMax } from "../../system/open-files.ts";

/** In the flags of an open file, as the kernel shows them in octal. */
const CLOSE_ON_EXEC = 0o2000000;

/** Node keeps an entry for each number up to the highest that it covers. Descriptors above this are closed. */
const INHERITED_FD_MAX = 65_535;

/** Stdin, stdout and stderr are set for each child. */
const ORDINARY = 2;

let known: readonly number[] | undefined;

export interface CoveredOptions extends Omit<SpawnOptions, "stdio"> {
  readonly stdio: readonly ("pipe" | "ignore" | number)[];
}

export function spawnCovered(file: string, args: readonly string[], options: CoveredOptions): ChildProcess {
  known ??= coverable(inheritedDescriptors(), Math.min(openFilesMax() ?? INHERITED_FD_MAX, INHERITED_FD_MAX));
  if (known.length === 0) return spawn(file, args, { ...options, stdio: [...options.stdio] });
  const cover = openSync(devNull, "r+");
  try {
    return spawn(file, args, { ...options, stdio: covered(options.stdio, known, cover) });
  } finally {
    closeSync(cover);
  }
}

/** The numbers of descriptors that a child would inherit. `self`: our directory in /proc. */
export function inheritedDescriptors(self = "/proc/self"): readonly number[] {
  return descriptorsIn(`${self}/fd`).filter((fd) => fd > ORDINARY && isInherited(`${self}/fdinfo/${fd}`));
}

/** Closes those that cannot be covered. Returns the others. */
function coverable(inherited: readonly number[], limit: number): readonly number[] {
  for (const fd of inherited) if (fd >= limit) closeSync(fd);
  return inherited.filter((fd) => fd < limit);
}

/** The `stdio` of a child: its intended descriptors, and `cover` wherever it would inherit one. */
export function covered<Own>(
  own: readonly Own[],
  inherited: readonly number[],
  cover: number,
): (Own | number | "ignore")[] {
  const last = Math.max(own.length - 1, ...inherited);
  return Array.from({ length: last + 1 }, (_, fd) => own[fd] ?? (inherited.includes(fd) ? cover : "ignore"));
}

function descriptorsIn(path: string): readonly number[] {
  try {
    return readdirSync(path).map(Number);
  } catch {
    // Without /proc they are unknown, and the gate of each child cannot check either.
    return [];
  }
}

function isInherited(path: string): boolean {
  try {
    const [, flags = "0"] = /^flags:\s*([0-7]+)$/m.exec(readFileSync(path, "latin1")) ?? [];
    return (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0;
  } catch {
    // Closed between the listing and this: it was the listing's own.
    return false;
  }
}
