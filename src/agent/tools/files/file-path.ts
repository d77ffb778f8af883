// Resolves paths within the workspace and protects them against being swapped while they are used.
//
// Invariants
// 1. No file is opened whose real path is outside the workspace or hidden.
// 2. A file is opened or renamed through its directory, which is held open and was checked after it was opened. The
//    last name is never followed if it is a link. So replacing a directory by a link between check and use has no
//    effect. (Without /proc the directory's inode is checked again instead, which leaves a short race.)
// 3. Only regular files are opened, and never in a way that blocks: a pipe or a device is refused.
import { constants } from "node:fs";
import { type FileHandle, lstat, open, opendir, readlink, realpath, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { ControlError } from "../../../core/errors.ts";
import { suggest } from "../../../core/suggest.ts";
import { codeOf, fileError, invalid, shown } from "./file-errors.ts";
import { PATH_CHARS_MAX, SUGGESTED_FROM_MAX } from "./file-limits.ts";

/** The part of the file system that the tools may use. Plain data, because it is passed to a worker thread. */
export interface Workspace {
  /** Absolute. */
  readonly workspace: string;
  /** Set for a session's directory, which is a real path: if a link has replaced it, the tools refuse to work. */
  readonly isReal?: true;
  /** Absolute paths that these tools treat as nonexistent, with everything below them. */
  readonly hidden: readonly string[];
}

export interface FilePath {
  /** The real path of the workspace. */
  readonly root: string;
  /** The real path, as far as it exists. */
  readonly path: string;
  /** Relative to the workspace, for display. */
  readonly name: string;
  /** The existing part of the path. */
  readonly there: string;
  /** The names that do not exist yet, outermost first. Empty if the whole path exists. */
  readonly missing: readonly string[];
  /** Real paths that are hidden from the tools. */
  readonly hidden: readonly string[];
}

/** Resolves a path given by the model. Throws `invalid` if it is outside the workspace or hidden. */
export async function locate(ground: Workspace, given: string): Promise<FilePath> {
  if (given.includes("\0")) throw invalid(`The path ${shown(given)} holds a NUL byte.`);
  if (given.length > PATH_CHARS_MAX) throw invalid(`The path ${shown(given)} is longer than a path may be.`);
  const root = await realpath(ground.workspace).catch((error: unknown) => {
    throw fileError("The workspace", error);
  });
  if (ground.isReal === true && root !== ground.workspace) throw invalid(EXCHANGED);
  const wanted = wantedPath(ground.workspace, root, given);
  const { there, missing } = await nearest(wanted, root, given);
  if (!isWithin(root, there)) throw invalid(`${shown(given)} leads out of the workspace by a link. ${STAY}`);
  const path = join(there, ...missing);
  const hidden = await Promise.all(ground.hidden.map((one) => realpath(one).catch(() => resolve(one))));
  if (isHidden(hidden, path)) throw invalid(`${shown(given)} belongs to Belay itself, and is closed to tools.`);
  return { root, path, name: relative(root, path) || ".", there, missing, hidden };
}

const STAY = "Only files of the workspace can be used. Nothing was done.";

const EXCHANGED = "The directory of this session was replaced by a link. Nothing was done.";

/** Resolves the path textually. The workspace itself may be spelled through a link, as users and shells do. */
function wantedPath(workspace: string, root: string, given: string): string {
  const wanted = resolve(root, given);
  if (isWithin(root, wanted)) return wanted;
  if (isWithin(workspace, wanted)) return join(root, relative(workspace, wanted));
  throw invalid(`${shown(given)} is outside of the workspace. ${STAY}`);
}

async function nearest(wanted: string, root: string, given: string): Promise<Pick<FilePath, "there" | "missing">> {
  const missing: string[] = [];
  for (let path = wanted; ; path = dirname(path)) {
    try {
      return { there: await realpath(path), missing };
    } catch (error) {
      if (codeOf(error) !== "ENOENT" || path === root) throw fileError(shown(given), error);
      // A dangling link exists although its target does not: writing would create the target anywhere.
      if (await isThere(path))
        throw invalid(`${shown(given)} is a link whose target does not exist. Nothing was done.`);
      missing.unshift(basename(path));
    }
  }
}

const isThere = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

/** Whether a real path is the directory or below it. Compares whole names. */
export function isWithin(directory: string, path: string): boolean {
  const way = relative(directory, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** Whether a path is hidden, or below a hidden one. */
export const isHidden = (hidden: readonly string[], path: string): boolean =>
  hidden.some((place) => isWithin(place, path));

/** A directory held open: paths through it stay in this very directory, even if it is renamed or replaced. */
export interface HeldDirectory extends AsyncDisposable {
  /** The path of an entry with this name; without a name, of the directory itself. */
  at(name?: string): string;
}

/** `path` is a real path within `root`. */
export async function holdDirectory(root: string, path: string): Promise<HeldDirectory> {
  const name = shown(relative(root, path) || ".");
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW).catch(
    (error: unknown) => {
      throw fileError(name, error);
    },
  );
  try {
    const way = await wayThrough(handle, path);
    if (way === undefined || !isWithin(root, path)) {
      throw new ControlError("conflict", `${name} was replaced while it was opened. Nothing was done.`);
    }
    return {
      at: (inner) => (inner === undefined ? way : `${way}${sep}${inner}`),
      [Symbol.asyncDispose]: () => handle.close(),
    };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** The path through which the opened directory is reached. Undefined if another directory was opened. */
async function wayThrough(handle: FileHandle, path: string): Promise<string | undefined> {
  const way = `/proc/self/fd/${handle.fd}`;
  const real = await readlink(way).catch(() => undefined);
  if (real !== undefined) return real === path ? way : undefined;
  const [opened, named] = await Promise.all([handle.stat(), realpath(path).then((one) => stat(one))]);
  return opened.dev === named.dev && opened.ino === named.ino && (await realpath(path)) === path ? path : undefined;
}

/** Opens a regular file for reading. The caller closes it. */
export async function openFile(place: FilePath): Promise<FileHandle> {
  const name = shown(place.name);
  if (place.missing.length > 0) throw await notThere(place);
  if (place.path === place.root) throw invalid(`${name} is a directory. Use list_files.`);
  await using held = await holdDirectory(place.root, dirname(place.path));
  const path = held.at(basename(place.path));
  const fail = (error: unknown): never => {
    throw fileError(name, error);
  };
  // Checked before opening too: opening some devices has side effects.
  checkOrdinary(name, await lstat(path).catch(fail));
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants;
  const handle = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY).catch(fail);
  try {
    checkOrdinary(name, await handle.stat());
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

interface Kind {
  isFile(): boolean;
  isDirectory(): boolean;
}

export function checkOrdinary(name: string, kind: Kind): void {
  if (kind.isFile()) return;
  if (kind.isDirectory()) throw invalid(`${name} is a directory. Use list_files.`);
  throw invalid(`${name} is not a regular file, but a pipe, a socket, a device or a link. It was not opened.`);
}

/** The error for a missing file, with a similar name if there is one. */
export async function notThere({ root, there, name, missing }: FilePath): Promise<ControlError> {
  const [first = ""] = missing;
  const meant = suggest(first, await someNames(root, there));
  const advice = meant === undefined ? "Look with list_files." : `Did you mean ${shown(meant)}?`;
  return new ControlError("not_found", `There is no ${shown(name)} in the workspace. ${advice}`);
}

async function someNames(root: string, directory: string): Promise<readonly string[]> {
  const names: string[] = [];
  try {
    await using held = await holdDirectory(root, directory);
    for await (const { name } of await opendir(held.at())) {
      names.push(name);
      if (names.length >= SUGGESTED_FROM_MAX) break;
    }
  } catch {
    // Not a directory, or not readable: then there is no suggestion.
  }
  return names;
}
