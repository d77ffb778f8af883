// Where a file is: within the workspace, links resolved, and held so that nobody exchanges the way to it.
//
// Invariants
// 1. Nothing is opened whose real path is outside of the workspace, or hidden.
// 2. What is opened or renamed is reached through its directory, which is held open and was checked after it was
//    opened. The last name is never followed if it is a link. So a directory that is exchanged for a link between the
//    check and the use leads nowhere. (Where there is no /proc the directory is checked again by its number instead,
//    which leaves a moment.)
// 3. Only ordinary files are opened, and never in a way that waits: a pipe or a device is refused.
import { constants } from "node:fs";
import { type FileHandle, lstat, open, opendir, readlink, realpath, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { ControlError } from "../../../core/errors.ts";
import { suggest } from "../../../core/suggest.ts";
import { codeOf, fileError, invalid, shown } from "./file-errors.ts";
import { PATH_CHARS_MAX, SUGGESTED_FROM_MAX } from "./file-limits.ts";

/** What the tools may touch. Plain data: it is handed to a thread as it is. */
export interface Workspace {
  /** Absolute. */
  readonly workspace: string;
  /** It is a real path, as the directory of a session is: if there is a link in its place by now, nothing is done. */
  readonly isReal?: true;
  /** Absolute: what is there, and below, does not exist for these tools. */
  readonly hidden: readonly string[];
}

export interface FilePath {
  /** The real path of the workspace. */
  readonly root: string;
  /** The real path, as far as it exists. */
  readonly path: string;
  /** Relative to the workspace, for people and models. */
  readonly name: string;
  /** As much of the path as exists. */
  readonly there: string;
  /** What of it does not exist yet, outermost first. Empty: all of it is there. */
  readonly missing: readonly string[];
  /** Real paths that the tools do not see. */
  readonly hidden: readonly string[];
}

/** Where a path of the model leads. Throws `invalid` if that is nowhere it may go. */
export async function locate(ground: Workspace, given: string): Promise<FilePath> {
  if (given.includes("\0")) throw invalid(`The path ${shown(given)} holds a NUL byte.`);
  if (given.length > PATH_CHARS_MAX) throw invalid(`The path ${shown(given)} is longer than a path may be.`);
  const home = await realpath(ground.workspace).catch((error: unknown) => {
    throw fileError("The workspace", error);
  });
  if (ground.isReal === true && home !== ground.workspace) throw invalid(EXCHANGED);
  const wanted = wantedPath(ground.workspace, home, given);
  const { there, missing } = await nearest(wanted, home, given);
  if (!isWithin(home, there)) throw invalid(`${shown(given)} leads out of the workspace by a link. ${STAY}`);
  const path = join(there, ...missing);
  const hidden = await Promise.all(ground.hidden.map((one) => realpath(one).catch(() => resolve(one))));
  if (isHidden(hidden, path)) throw invalid(`${shown(given)} belongs to Belay itself, and is closed to tools.`);
  return { root: home, path, name: relative(home, path) || ".", there, missing, hidden };
}

const STAY = "Only files of the workspace can be used. Nothing was done.";

const EXCHANGED = "The directory of this session is not what it was: there is a link in its place. Nothing was done.";

/** By its words alone. The workspace may be spelt by a link to it, as people and shells spell it. */
function wantedPath(workspace: string, home: string, given: string): string {
  const wanted = resolve(home, given);
  if (isWithin(home, wanted)) return wanted;
  if (isWithin(workspace, wanted)) return join(home, relative(workspace, wanted));
  throw invalid(`${shown(given)} is outside of the workspace. ${STAY}`);
}

async function nearest(wanted: string, home: string, given: string): Promise<Pick<FilePath, "there" | "missing">> {
  const missing: string[] = [];
  for (let path = wanted; ; path = dirname(path)) {
    try {
      return { there: await realpath(path), missing };
    } catch (error) {
      if (codeOf(error) !== "ENOENT" || path === home) throw fileError(shown(given), error);
      // A link that leads nowhere is there, though what it names is not: writing would make it, wherever that is.
      if (await isThere(path)) throw invalid(`${shown(given)} is a link that leads nowhere. Nothing was done.`);
      missing.unshift(basename(path));
    }
  }
}

const isThere = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

/** Whether a real path is a directory or somewhere below it, by whole names. */
export function isWithin(directory: string, path: string): boolean {
  const way = relative(directory, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** Whether it is one of the places that the tools do not see, or below one. */
export const isHidden = (hidden: readonly string[], path: string): boolean =>
  hidden.some((place) => isWithin(place, path));

/** A directory that is held open: what is reached through it is in that very directory, whatever its name becomes. */
export interface HeldDirectory extends AsyncDisposable {
  /** A path to what has this name in it; the directory itself without one. */
  at(name?: string): string;
}

/** `path` is a real path within `home`. */
export async function holdDirectory(home: string, path: string): Promise<HeldDirectory> {
  const name = shown(relative(home, path) || ".");
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW).catch(
    (error: unknown) => {
      throw fileError(name, error);
    },
  );
  try {
    const way = await wayThrough(handle, path);
    if (way === undefined || !isWithin(home, path)) {
      throw new ControlError("conflict", `${name} was exchanged while it was opened. Nothing was done.`);
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

/** How the opened directory is reached. Undefined: it is not the one that was meant. */
async function wayThrough(handle: FileHandle, path: string): Promise<string | undefined> {
  const way = `/proc/self/fd/${handle.fd}`;
  const real = await readlink(way).catch(() => undefined);
  if (real !== undefined) return real === path ? way : undefined;
  const [opened, named] = await Promise.all([handle.stat(), realpath(path).then((one) => stat(one))]);
  return opened.dev === named.dev && opened.ino === named.ino && (await realpath(path)) === path ? path : undefined;
}

/** Opens an ordinary file to be read. Whoever asks closes it. */
export async function openFile(place: FilePath): Promise<FileHandle> {
  const name = shown(place.name);
  if (place.missing.length > 0) throw await notThere(place);
  if (place.path === place.root) throw invalid(`${name} is a directory. Use list_files.`);
  await using held = await holdDirectory(place.root, dirname(place.path));
  const path = held.at(basename(place.path));
  const trouble = (error: unknown): never => {
    throw fileError(name, error);
  };
  // Before it is opened too: some devices do something when they are.
  checkOrdinary(name, await lstat(path).catch(trouble));
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants;
  const handle = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY).catch(trouble);
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
  throw invalid(`${name} is no ordinary file: a pipe, a socket, a device or a link. It was not opened.`);
}

/** That a file is not there, and which one may have been meant. */
export async function notThere({ root: home, there, name, missing }: FilePath): Promise<ControlError> {
  const [first = ""] = missing;
  const meant = suggest(first, await someNames(home, there));
  const advice = meant === undefined ? "Look with list_files." : `Did you mean ${shown(meant)}?`;
  return new ControlError("not_found", `There is no ${shown(name)} in the workspace. ${advice}`);
}

async function someNames(home: string, directory: string): Promise<readonly string[]> {
  const names: string[] = [];
  try {
    await using held = await holdDirectory(home, directory);
    for await (const { name } of await opendir(held.at())) {
      names.push(name);
      if (names.length >= SUGGESTED_FROM_MAX) break;
    }
  } catch {
    // It is no directory, or may not be read: then there is nothing to suggest.
  }
  return names;
}
