// Directories that only their owner can read, so that the files in them need no other protection.
import { lstatSync, mkdirSync, readlinkSync, realpathSync, type Stats, statSync } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";
import { ControlError, messageOf } from "../../core/errors.ts";

const OTHERS = 0o077;
const OTHERS_WRITE = 0o022;
const GROUP_WRITE = 0o020;
const WORLD_WRITE = 0o002;
/** In a sticky directory, only the owner of an entry can rename it. */
const STICKY = 0o1000;

/**
 * Creates the directory with mode 0700 if it does not exist. The mode of an existing directory is never changed: it may
 * be shared on purpose, like /run, and a private mode would lock out its other users. It is refused if others can
 * read it.
 */
export function openPrivateDirectory(path: string): void {
  create(path);
  const found = lstatSync(path);
  if (!found.isDirectory())
    throw refused(`${path} is a link, not a directory.`, "Use the path of the directory itself.");
  mustBeOurs(path, found);
  refuseWritableParents(realpathSync(path));
  if ((found.mode & OTHERS_WRITE) !== 0) {
    throw refused(`Other users can write to ${path}, so it cannot hold secrets.`, "Use a separate directory.");
  }
  if (isOpenToOthers(found)) {
    throw refused(
      `Other users can read ${path}, so it cannot hold secrets. It already existed, so its mode was not changed.`,
      `Use a separate directory, which Belay creates; or, if nothing else uses this one: chmod 700 ${path}`,
    );
  }
}

function create(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (cause) {
    const message = `${path} does not exist and cannot be created: ${messageOf(cause)}`;
    throw new ControlError("forbidden", message, { cause, hint: "Use a directory that this user can create." });
  }
}

/**
 * Throws if another user can write to a parent directory: they could replace the directory, and with it the tokens.
 * `path` must not contain symbolic links.
 */
export function refuseWritableParents(path: string): void {
  const own = process.getuid?.();
  for (let parent = dirname(path); own !== undefined; parent = dirname(parent)) {
    const stats = statSync(parent);
    if (stats.uid !== own && stats.uid !== 0) throw replaceable(path, `${parent} belongs to another user, who`);
    if (isWritableByOthers(stats, own)) throw replaceable(path, `Other users can write to ${parent}. They`);
    if (parent === dirname(parent)) return;
  }
}

/** The same for a path with symbolic links: a user who can replace one of them can replace the path. */
export function refuseReplaceable(path: string): void {
  const own = process.getuid?.();
  for (const link of own === undefined ? [] : linksOf(path)) {
    const { uid } = lstatSync(link);
    if (uid !== own && uid !== 0) throw replaceable(path, `${link} belongs to another user, who`);
    refuseWritableParents(link);
  }
  refuseWritableParents(realpathSync(path));
}

/** The limit of the kernel. */
const LINKS_MAX = 40;

/** The symbolic links on the way to a file or directory. Each is returned with all links above it resolved. */
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
  // Most systems create a private group with the same number as its user; a umask of 002 relies on it.
  const isOwnGroup = gid === 0 || (gid === own && gid === process.getgid?.());
  return (mode & WORLD_WRITE) !== 0 || ((mode & GROUP_WRITE) !== 0 && !isOwnGroup);
}

const replaceable = (path: string, who: string): ControlError =>
  refused(`${who} could replace ${path} as a whole.`, "Use a directory whose parent directories are yours.");

/** Throws if the file belongs to another user. That root can open it does not make it trustworthy. */
export function mustBeOurs(path: string, { uid }: Pick<Stats, "uid">): void {
  const own = process.getuid?.();
  if (own === undefined || uid === own) return;
  throw refused(`${path} belongs to another user (uid ${uid}).`, "Use a path of your own, or change the owner.");
}

export const isOpenToOthers = ({ mode }: Pick<Stats, "mode">): boolean => (mode & OTHERS) !== 0;

export const refused = (message: string, hint: string): ControlError =>
  new ControlError("forbidden", message, { hint });
