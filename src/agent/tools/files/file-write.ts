// Writing a file so that it is either as it was or as it shall be: beside it, then renamed into its place.
import { constants } from "node:fs";
import { access, type FileHandle, lstat, mkdir, open, rename, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ControlError } from "../../../core/errors.ts";
import type { CallId } from "../../../core/model/ids.ts";
import { codeOf, fileError, invalid, shown } from "./file-errors.ts";
import { TEMPORARY_NAMES_MAX } from "./file-limits.ts";
import { checkOrdinary, type FilePath, type HeldDirectory, holdDirectory } from "./file-path.ts";

/** A state of a file: whoever writes to it, or puts another in its place, changes it. */
export type FileVersion = string;

interface Numbers {
  readonly ino: bigint;
  readonly size: bigint;
  readonly mtimeNs: bigint;
}

export const versionOf = ({ ino, size, mtimeNs }: Numbers): FileVersion => `${ino} ${size} ${mtimeNs}`;

/**
 * Names that decide what is run, by whom and with which rights, when somebody opens the workspace, commits in it or
 * starts Belay there. A model that could write them could do later, unasked, what it may not do now.
 */
const GUARDED_DIRECTORIES: ReadonlySet<string> = new Set([
  ...[".git", ".hg", ".svn", ".husky", ".vscode", ".idea", ".devcontainer", ".belay"],
]);
const GUARDED_FILES: ReadonlySet<string> = new Set([
  ...[".gitmodules", ".gitconfig", ".mcp.json", ".envrc", ".npmrc", ".yarnrc.yml"],
  ...[".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin"],
]);
const OWN_CONFIGURATION = /^belay\.config\.[a-z]+$/;

/** Throws `invalid` if nobody but people may write there. */
export function checkWritable({ name, missing }: FilePath): void {
  // Compared without their case, as some disks do.
  const names = name.toLowerCase().split(/[\\/]/);
  const last = names.at(-1) ?? "";
  const guarded = names.find((one) => GUARDED_DIRECTORIES.has(one));
  if (guarded !== undefined || GUARDED_FILES.has(last) || OWN_CONFIGURATION.test(last)) {
    throw invalid(
      `${shown(name)} decides what is run when people use this workspace; only they may write there. Nothing was done.`,
    );
  }
  if (name === ".") throw invalid("The workspace itself is no file.");
  if (missing.some((one) => /\p{Cc}/u.test(one))) throw invalid(`${shown(name)} has control characters in its name.`);
}

export interface Replacement {
  readonly bytes: Uint8Array;
  /** What it is written over; a file that has changed since is left alone. Undefined: it must not exist. */
  readonly over: FileVersion | undefined;
  readonly callId: CallId;
  readonly signal: AbortSignal;
}

/** Answers with the version that is there now. Stopped before the rename, nothing has changed. */
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
      // The last look before the deed: what follows is one step.
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

/** Made one by one, each within the one before, which is held: so none of them is made elsewhere. */
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
  // A rename asks for the rights of the directory alone; that somebody has protected the file counts too.
  await access(target, constants.W_OK);
  return found;
}

export const changedSince = (name: string): ControlError =>
  new ControlError(
    "conflict",
    `${shown(name)} has changed since you have seen it. Nothing was written. Read it again, then decide.`,
    { hint: "Read the file again." },
  );

async function createBeside(
  held: HeldDirectory,
  callId: CallId,
  existing: Existing | undefined,
): Promise<{ readonly path: string; readonly handle: FileHandle }> {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  // What replaces a private file is never readable by others, not even while it is written.
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
    // Only root can give a file away; for everybody else it stays their own, which is what an editor does too.
    await handle.chown(Number(uid), Number(gid)).catch(() => undefined);
    await handle.chmod(Number(mode) & 0o777);
  }
  await handle.sync();
}
