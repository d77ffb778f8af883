// A directory that only its owner can look into: what lies in it needs no other protection.
import { lstatSync, mkdirSync, readlinkSync, realpathSync, type Stats, statSync } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";
import { ControlError, messageOf } from "../../core/errors.ts";

const OTHERS = 0o077;
const OTHERS_WRITE = 0o022;
const GROUP_WRITE = 0o020;
const WORLD_WRITE = 0o002;
/** Of a directory with it, each entry can be renamed by its owner alone. */
const STICKY = 0o1000;

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
  refuseWritableParents(realpathSync(path));
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

/**
 * Another user who may write to a directory above can put another one in its place, and with it tokens of their own.
 * `path` has no links in it.
 */
export function refuseWritableParents(path: string): void {
  const own = process.getuid?.();
  for (let parent = dirname(path); own !== undefined; parent = dirname(parent)) {
    const stats = statSync(parent);
    if (stats.uid !== own && stats.uid !== 0) throw replaceable(path, `${parent} belongs to another user, who`);
    if (isWritableByOthers(stats, own)) throw replaceable(path, `Others may write to ${parent}. They`);
    if (parent === dirname(parent)) return;
  }
}

/** The same for a path that links lead to: a user who can replace one of them can replace the path. */
export function refuseReplaceable(path: string): void {
  const own = process.getuid?.();
  for (const link of own === undefined ? [] : linksOf(path)) {
    const { uid } = lstatSync(link);
    if (uid !== own && uid !== 0) throw replaceable(path, `${link} belongs to another user, who`);
    refuseWritableParents(link);
  }
  refuseWritableParents(realpathSync(path));
}

/** As many as the kernel follows. */
const LINKS_MAX = 40;

/** The symbolic links that are followed on the way to a file or directory. No link is above any of them. */
export function linksOf(path: string): readonly string[] {
  const links: string[] = [];
  const rest = partsOf(resolve(path));
  for (let at: string = sep; rest.length > 0 && links.length < LINKS_MAX; ) {
    const next = join(at, rest.shift() ?? "");
    const isLink = lstatSync(next, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
    if (isLink) {
      links.push(next);
      rest.unshift(...partsOf(resolve(at, readlinkSync(next))));
    }
    at = isLink ? sep : next;
  }
  return links;
}

const partsOf = (path: string): string[] => path.split(sep).filter((part) => part !== "");

function isWritableByOthers({ mode, gid }: Stats, own: number): boolean {
  if ((mode & STICKY) !== 0) return false;
  // A group of the same number as its user is that user's own, as most systems make them; a umask of 002 relies on it.
  const isOwnGroup = gid === 0 || (gid === own && gid === process.getgid?.());
  return (mode & WORLD_WRITE) !== 0 || ((mode & GROUP_WRITE) !== 0 && !isOwnGroup);
}

const replaceable = (path: string, who: string): ControlError =>
  refused(`${who} could replace ${path} as a whole.`, "Use a directory below directories of your own.");

/** Root can open everybody's files; that does not make them ours. */
export function mustBeOurs(path: string, { uid }: Pick<Stats, "uid">): void {
  const own = process.getuid?.();
  if (own === undefined || uid === own) return;
  throw refused(`${path} belongs to another user (uid ${uid}).`, "Use a place of your own, or become its owner.");
}

export const isOpenToOthers = ({ mode }: Pick<Stats, "mode">): boolean => (mode & OTHERS) !== 0;

export const refused = (message: string, hint: string): ControlError =>
  new ControlError("forbidden", message, { hint });
