// Errors of the file tools. Each says what happened and that nothing was done.
import { ControlError } from "../../../core/errors.ts";

const SHOWN_CHARS_MAX = 200;

/** Formats a path for a sentence. Quoted, so that its text cannot be taken for ours. */
export const shown = (path: string): string =>
  JSON.stringify(path.length > SHOWN_CHARS_MAX ? `${path.slice(0, SHOWN_CHARS_MAX)}…` : path);

/** Formats a path for a list: quoted only if it contains quotes, line breaks or control characters. */
export const listed = (path: string): string => (/[\p{Cc}\p{Cf}\u2028\u2029"]/u.test(path) ? shown(path) : path);

export const invalid = (message: string, cause?: unknown): ControlError =>
  new ControlError("invalid", message, cause === undefined ? undefined : { cause });

export const codeOf = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : "");

/** Converts an error of the operating system. `name` must be ready for a sentence. */
export function fileError(name: string, error: unknown): ControlError {
  if (error instanceof ControlError) return error;
  const code = codeOf(error);
  const problem = PROBLEMS[code] ?? `cannot be used${code === "" ? "" : ` (${code})`}`;
  return new ControlError(code === "ENOENT" ? "not_found" : "invalid", `${name} ${problem}. Nothing was done.`, {
    cause: error,
  });
}

const PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  ENOTDIR: "is not a directory, or a part of the path is not",
  EISDIR: "is a directory",
  EACCES: "may not be used by the server's user",
  EPERM: "may not be used by the server's user",
  EROFS: "is on a disk that cannot be written to",
  ENOSPC: "could not be written: the disk is full",
  EDQUOT: "could not be written: the disk quota is used up",
  ELOOP: "is a link, or leads into a cycle of links",
  ENXIO: "is not a regular file",
  ENAMETOOLONG: "has a name longer than a name may be",
  EMFILE: "could not be opened: too many files are open",
};
