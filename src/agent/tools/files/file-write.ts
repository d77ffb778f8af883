// Atomic file writes: a temporary file beside the target, renamed over it.
import { constants } from "node:fs";
import { access, type FileHandle, lstat, mkdir, open, rename, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ControlError } from "../../../core/errors.ts";
import type { CallId } from "../../../core/model/ids.ts";
import { codeOf, fileError, invalid, shown } from "./file-errors.ts";
import { TEMPORARY_NAMES_MAX } from "./file-limits.ts";
import { checkOrdinary, type FilePath, type HeldDirectory, holdDirectory } from "./file-path.ts";

/** Identifies the content of a file: changes when the file is written or replaced. */
export type FileVersion = string;

interface Numbers {
  readonly ino: bigint;
  readonly size: bigint;
  readonly mtimeNs: bigint;
}

export const versionOf = ({ ino, size, mtimeNs }: Numbers): FileVersion => `${ino} ${size} ${mtimeNs}`;

/**
 * Paths that decide what is executed, and by whom, when a person opens the workspace, commits in it or starts Belay
 * there. A model that could write them could bypass approval later.
 */
const GUARDED_DIRECTORIES: ReadonlySet<string> = new Set([
  ...[".git", ".hg", ".svn", ".husky", ".vscode", ".idea", ".devcontainer", ".belay"],
]);
const GUARDED_FILES: ReadonlySet<string> = new Set([
  ...[".gitmodules", ".gitconfig", ".mcp.json", ".envrc", ".npmrc", ".yarnrc.yml"],
  ...[".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin"],
]);
const OWN_CONFIGURATION = /^belay\.config\.[a-z]+$/;

/** Throws `invalid` for paths that only people may write. */
export function checkWritable({ name, missing }: FilePath): void {
  // Compared case-insensitively, as some file systems do.
  const names = name.toLowerCase().split(/[\\/]/);
  const last = names.at(-1) ?? "";
  const guarded = names.find((one) => GUARDED_DIRECTORIES.has(one));
  if (guarded !== undefined || GUARDED_FILES.has(last) || OWN_CONFIGURATION.test(last)) {
    throw invalid(
      `${shown(name)} decides what is run when people use this workspace; only they may write there. Nothing was done.`,
    );
  }
  if (name === ".") throw invalid("The workspace itself is not a file.");
  if (missing.some((one) => /\p{Cc}/u.test(one))) throw invalid(`${shown(name)} has control characters in its name.`);
}

export interface Replacement {
  readonly bytes: Uint8Array;
  /** The version that is overwritten; a file that has changed since is left alone. Undefined: it must not exist. */
  readonly over: FileVersion | undefined;
  readonly callId: CallId;
  readonly signal: AbortSignal;
}

/** Returns the new version. If stopped before the rename, nothing has changed. */
export async function replaceFile(place: FilePath, given: Replacement): Promise<FileVersion> {
  const directory = await makeDirectories(place);
  await using held = await holdDirectory(place.root, directory);
  const target = held.at(basename(place.path));
  try {
    const existing = await existingAt(target, place, given.over);
    const temporary = await createBeside(held, given.callId, existing);
    try {
      await fill(temporary.handle, given, existing);
      given.signal.throwIfAborted();
      // The last check before the rename.
      await existingAt(target, place, given.over);
      given.signal.throwIfAborted();
      const version = versionOf(await temporary.handle.stat({ bigint: true }));
      await rename(temporary.path, target);
      return version;
    } catch (error) {
      await unlink(temporary.path).catch(() => undefined);
      throw error;
    } finally {
      await temporary.handle.close();
    }
  } catch (error) {
    if (given.signal.aborted) throw error;
    throw fileError(shown(place.name), error);
  }
}

/** Creates the missing directories one by one, each inside its held parent, so that none is created elsewhere. */
async function makeDirectories({ root: home, there, missing, path }: FilePath): Promise<string> {
  if (missing.length === 0) return dirname(path);
  let directory = there;
  for (const name of missing.slice(0, -1)) {
    await using held = await holdDirectory(home, directory);
    await mkdir(held.at(name)).catch((error: unknown) => {
      if (codeOf(error) !== "EEXIST") throw fileError(shown(name), error);
    });
    directory = join(directory, name);
  }
  return directory;
}

interface Existing {
  readonly mode: bigint;
  readonly uid: bigint;
  readonly gid: bigint;
}

async function existingAt(
  target: string,
  { name }: FilePath,
  over: FileVersion | undefined,
): Promise<Existing | undefined> {
  const found = await lstat(target, { bigint: true }).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  });
  if (found === undefined && over === undefined) return undefined;
  if (found !== undefined) checkOrdinary(shown(name), found);
  if (found === undefined || over === undefined || versionOf(found) !== over) throw changedSince(name);
  // A rename needs only write permission on the directory; a write-protected file must be respected too.
  await access(target, constants.W_OK);
  return found;
}

export const changedSince = (name: string): ControlError =>
  new ControlError(
    "conflict",
    `${shown(name)} has changed since you read it. Nothing was written. Read it again, then decide.`,
    { hint: "Read the file again." },
  );

async function createBeside(
  held: HeldDirectory,
  callId: CallId,
  existing: Existing | undefined,
): Promise<{ readonly path: string; readonly handle: FileHandle }> {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  // A replacement for a private file is never readable by others, even while it is written.
  const mode = existing === undefined ? 0o666 : 0o600;
  for (let attempt = 1; ; attempt += 1) {
    const path = held.at(`.belay-${callId}-${attempt}.tmp`);
    try {
      return { path, handle: await open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode) };
    } catch (error) {
      if (codeOf(error) !== "EEXIST" || attempt >= TEMPORARY_NAMES_MAX) throw error;
    }
  }
}

async function fill(handle: FileHandle, { bytes, signal }: Replacement, existing: Existing | undefined): Promise<void> {
  await handle.writeFile(bytes, { signal });
  if (existing !== undefined) {
    const { uid, gid, mode } = existing;
    // Only root can change the owner. For other users the file becomes theirs, as with an editor.
    await handle.chown(Number(uid), Number(gid)).catch(() => undefined);
    await handle.chmod(Number(mode) & 0o777);
  }
  await handle.sync();
}
