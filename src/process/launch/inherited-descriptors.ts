// Starts children that get the file descriptors they are given, and no others.
//
// What this program has inherited without close-on-exec, its children would inherit in turn; and a descriptor that is
// open on a directory leads out of every mount namespace. A child finds /dev/null in the place of each of them, and its
// gate (`gate.ts`) verifies that. This program keeps them, because a host may use what it was given; except those above
// the limit on open files, which nothing can be put in the place of.
//
// Node opens everything close-on-exec. What is not was there before Node, or was opened by native code of the host; the
// first are looked up once, and where there are others, the gate refuses to go on.
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { closeSync, openSync, readdirSync, readFileSync } from "node:fs";
import { devNull } from "node:os";
import { openFilesMax } from "../../system/open-files.ts";

/** As the kernel shows the flags of an open file, in octal. */
const CLOSE_ON_EXEC = 0o2000000;

/** Node keeps one place for each number up to the highest that it covers. Whatever is above is closed. */
const INHERITED_FD_MAX = 65_535;

/** The ordinary three are given to each child anew. */
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

/** The numbers of descriptors that a child would inherit. `self`: where the kernel shows ours. */
export function inheritedDescriptors(self = "/proc/self"): readonly number[] {
  return descriptorsIn(`${self}/fd`).filter((fd) => fd > ORDINARY && isInherited(`${self}/fdinfo/${fd}`));
}

/** Closes those that cannot be covered. Returns the others. */
function coverable(inherited: readonly number[], limit: number): readonly number[] {
  for (const fd of inherited) if (fd >= limit) closeSync(fd);
  return inherited.filter((fd) => fd < limit);
}

/** What a child gets as `stdio`: what it is meant to have, and `cover` wherever it would inherit something. */
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
    // No /proc: nothing can be told, and the gate of each child cannot look either.
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
