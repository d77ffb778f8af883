// The paths of Belay that contained processes must not see or change: one list, which every mechanism with a mount
// namespace turns into mounts.
//
// Invariants
// 1. Directories are covered as a whole. A file covered alone becomes visible again as soon as a rename replaces it, so
//    only files outside of Belay's own directories are.
// 2. Each directory above a covered path is mounted onto itself (`pinned`): a mount point cannot be renamed, so no
//    other directory can be put where the server and the command line look for theirs.
// 3. A read-only path is mounted onto itself as well, so it cannot be renamed or removed either. A directory in which a
//    command works is not read-only.
import { lstatSync, realpathSync } from "node:fs";
import { dirname } from "node:path";
import { isWithin } from "../launch/working-directory.ts";
import type { LaunchPlan } from "./containment.ts";

export interface ProtectedPaths {
  /** Hidden from every process, whatever its profile: with a token it could approve its own calls. */
  readonly hidden: readonly string[];
  /** Read-only for every process, whatever its profile: code that the next start runs. */
  readonly readOnly?: readonly string[];
  /** The server's workspace, if it lies inside a hidden directory: the one visible part. */
  readonly exposed?: string | undefined;
}

export interface HiddenPaths {
  /** Real paths, outermost first. */
  readonly directories: readonly string[];
  readonly files: readonly string[];
  /** Files and directories that are not hidden, outermost first. */
  readonly readOnly: readonly string[];
  /** The directories above all of these, outermost first, without the root directory. */
  readonly pinned: readonly string[];
}

/** Paths that do not exist, or lie inside another hidden directory, need no mount. */
export function hiddenPaths(
  { hidden, readOnly: unchanged = [] }: ProtectedPaths,
  { workspace }: Pick<LaunchPlan, "workspace">,
): HiddenPaths {
  const found = realPaths(hidden);
  const all = found.filter(isDirectory);
  const directories = all.filter((path) => !all.some((other) => other !== path && isWithin(other, path)));
  const files = found.filter((path) => !isDirectory(path) && !directories.some((other) => isWithin(other, path)));
  const readOnly = realPaths(unchanged).filter(
    (path) => !isWithin(path, workspace) && !files.includes(path) && !directories.some((one) => isWithin(one, path)),
  );
  const pinned = [...new Set([...directories, ...files, ...readOnly].flatMap(above))].toSorted(byLength);
  return { directories, files, readOnly, pinned };
}

const realPaths = (paths: readonly string[]): readonly string[] =>
  [...new Set(paths.flatMap((path) => realPath(path) ?? []))].toSorted(byLength);

const byLength = (one: string, other: string): number => one.length - other.length;

function above(path: string): readonly string[] {
  const parent = dirname(path);
  return parent === "/" ? [] : [...above(parent), parent];
}

/** Undefined: the file does not exist. */
export function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

export function isDirectory(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
