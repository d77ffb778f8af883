// A directory that only its owner can look into: what lies in it needs no other protection.
import { lstatSync, mkdirSync, type Stats } from "node:fs";
import { ControlError, messageOf } from "../../core/errors.ts";

const OTHERS = 0o077;
const OTHERS_WRITE = 0o022;

/**
 * Makes it if it is missing, closed to others. One that was there before is never changed: it may be a place that is
 * meant to be open, like /run, and closing it would lock out everything else that uses it. If others may look into it,
 * it is refused.
 */
export function openPrivateDirectory(path: string): void {
  make(path);
  const found = lstatSync(path);
  if (!found.isDirectory()) throw refused(`${path} is a link, not a directory.`, "Name the directory itself.");
  mustBeOurs(path, found);
  if ((found.mode & OTHERS_WRITE) !== 0) {
    throw refused(`Others may write to ${path}, so it is no place for secrets.`, "Use a directory of its own.");
  }
  if (isOpenToOthers(found)) {
    throw refused(
      `Others may look into ${path}, so it is no place for secrets. It was there before, and is left as it is.`,
      `Use a directory of its own, which Belay makes; or, if nothing else uses this one: chmod 700 ${path}`,
    );
  }
}

function make(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (cause) {
    const message = `${path} is not there, and cannot be made: ${messageOf(cause)}`;
    throw new ControlError("forbidden", message, { cause, hint: "Name a directory that this user may make." });
  }
}

/** Root can open everybody's files; that does not make them ours. */
export function mustBeOurs(path: string, { uid }: Pick<Stats, "uid">): void {
  const own = process.getuid?.();
  if (own === undefined || uid === own) return;
  throw refused(`${path} belongs to another user (uid ${uid}).`, "Use a place of your own, or become its owner.");
}

export const isOpenToOthers = ({ mode }: Pick<Stats, "mode">): boolean => (mode & OTHERS) !== 0;

export const refused = (message: string, hint: string): ControlError =>
  new ControlError("forbidden", message, { hint });
