// The files of an audit trail: numbered, the highest is the current one. Only their owner can read them.
import { constants } from "node:fs";
import { type FileHandle, mkdir, open, readdir, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { ControlError, messageOf } from "../../core/errors.ts";

/** The path of a file. Files are never renamed, so a position in a file stays valid. */
export const auditFile = (folder: string, number: number): string =>
  join(folder, `audit.${String(number).padStart(6, "0")}.jsonl`);

/** The numbers of the existing files, in ascending order. Empty if nothing was ever written. */
export async function auditNumbers(folder: string): Promise<readonly number[]> {
  const names = await readdir(folder).catch((error: unknown) =>
    codeOf(error) === "ENOENT" ? [] : Promise.reject(error),
  );
  const numbers = names.flatMap((name) => /^audit\.(\d{6,12})\.jsonl$/.exec(name)?.[1] ?? []);
  return numbers.map(Number).toSorted((one, other) => one - other);
}

/** Creates a folder that only its owner can enter. Refuses an existing folder that others can enter. */
export async function makeAuditFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw badPlace(folder, `it cannot be created: ${messageOf(cause)}`, cause);
  }
  const { mode } = await stat(folder);
  if ((mode & 0o077) !== 0) throw badPlace(folder, "others can enter it", undefined);
}

/** The part of a file handle that the trail needs. */
export type AppendFile = Pick<FileHandle, "write" | "close">;

export interface OpenedFile {
  readonly file: AppendFile;
  readonly bytes: number;
}

/**
 * Opens the file with this number for appending. If a crash or a full disk has torn its last line, the line is ended,
 * so that the next record starts on a new line. Nothing is removed.
 */
export async function openAuditFile(folder: string, number: number): Promise<OpenedFile> {
  const path = auditFile(folder, number);
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDWR } = constants;
  // Follows no symbolic link and does not block on a pipe, so that the records cannot be redirected.
  const file = await open(path, O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_RDWR, 0o600);
  try {
    const { size, mode } = await statOf(file, path);
    if ((mode & 0o077) !== 0) await file.chmod(0o600);
    if (size === 0) return { file, bytes: 0 };
    const last = await file.read(Buffer.alloc(1), 0, 1, size - 1);
    if (last.buffer[0] === LINE_FEED) return { file, bytes: size };
    await file.write("\n");
    return { file, bytes: size + 1 };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function statOf(file: FileHandle, path: string): Promise<{ readonly size: number; readonly mode: number }> {
  const found = await file.stat();
  if (!found.isFile()) throw new ControlError("invalid", `${path} is not a file.`);
  return found;
}

/** Deletes all files but the `kept` newest up to `newest`. */
export async function dropOldAuditFiles(folder: string, newest: number, kept: number): Promise<void> {
  for (const number of await auditNumbers(folder)) {
    if (number <= newest - kept) await unlink(auditFile(folder, number));
  }
}

export const LINE_FEED = 10;

/** The system's error code, such as ENOENT. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;

export const badPlace = (folder: string, why: string, cause: unknown): ControlError =>
  new ControlError("invalid", `The audit trail cannot be kept in ${folder}: ${why}.`, {
    cause,
    hint: "Use a separate folder with mode 0700, or one that does not exist yet.",
  });
