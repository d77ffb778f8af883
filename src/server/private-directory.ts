// A directory that only its owner can look into: what lies in it needs no other protection.
import { chmodSync, lstatSync, mkdirSync, type Stats } from "node:fs";
import { ControlError, messageOf } from "../core/control-error.ts";

const OTHERS = 0o077;
const OTHERS_WRITE = 0o022;

/**
 * Makes it if it is missing. One of ours that others can look into is closed to them; one they can write to is refused,
 * because nobody knows what they have put there, and because it may be a place that is meant to be open, like /tmp.
 */
export function openPrivateDirectory(path: string): void {
  make(path);
  const found = lstatSync(path);
  if (!found.isDirectory()) throw refused(`${path} is a link, not a directory.`, "Name the directory itself.");
  mustBeOurs(path, found);
  if ((found.mode & OTHERS_WRITE) !== 0) {
    throw refused(`Others may write to ${path}, so it is no place for secrets.`, "Use a directory of its own.");
  }
  if ((found.mode & OTHERS) !== 0) chmodSync(path, 0o700);
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
