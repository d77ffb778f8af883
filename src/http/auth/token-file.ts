// `tokens.json` and `token` on disk: read without following symbolic links, and written atomically.
//
// Invariants
// 1. Only one process writes at a time: the one that has created `tokens.json.new`.
// 2. Both files have mode 0600 from their first byte. A file of another user is not read.
import {
  type BigIntStats,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { ControlError } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import { TOKENS_FILE_BYTES_MAX, TOKENS_WRITE_MS_MAX } from "../limits.ts";
import { isOpenToOthers, mustBeOurs, refused } from "./private-directory.ts";
import { decodeTokens, encodeTokens, isSecret, type TokenEntry } from "./token.ts";

const LIST = "tokens.json";
const LOCAL = "token";

/** The path of the file with the token for the command line of the same user. */
export const localTokenFile = (dir: string): string => join(dir, LOCAL);

/**
 * An open directory with tokens. While it is open its inode number is not reused, and files are read from this
 * directory even if its path leads to another one.
 */
export class TokensDirectory {
  readonly #path: string;
  readonly #fd: number;
  readonly #identity: string;
  /** A path that always leads to the open directory. Without /proc: its ordinary path. */
  readonly through: string;

  constructor(path: string) {
    this.#path = path;
    this.#fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    this.#identity = identityOf(fstatSync(this.#fd, { bigint: true }));
    const through = `/proc/self/fd/${this.#fd}`;
    this.through = existsSync(through) ? through : path;
  }

  /** The current state of its path: `same`, or a text that identifies another directory or an error. */
  look(): string {
    const found = pathState(this.#path);
    return found === this.#identity ? "same" : found;
  }

  close(): void {
    closeSync(this.#fd);
  }
}

const identityOf = ({ dev, ino }: BigIntStats): string => `${dev}.${ino}`;

/** The entries of the file. Empty if there is no file. */
export function readTokens(dir: string): readonly TokenEntry[] {
  const list = join(dir, LIST);
  const found = readOwn(list);
  // Hashes of 256 random bits are useless to other users, so the tokens stay valid; the mode is corrected anyway.
  if (found?.open === true) chmodSync(list, 0o600);
  return found === undefined ? [] : decodeTokens(found.text);
}

function pathState(dir: string): string {
  try {
    const found = lstatSync(dir, { bigint: true, throwIfNoEntry: false });
    return found === undefined ? "none" : identityOf(found);
  } catch (thrown) {
    return String(codeOf(thrown));
  }
}

/** Changes whenever the file changes. For a file that cannot be read it is the error code. */
export function versionOf(dir: string): string {
  try {
    const found = lstatSync(join(dir, LIST), { bigint: true, throwIfNoEntry: false });
    if (found === undefined) return "none";
    return `${found.dev}.${found.ino}.${found.size}.${found.mtimeNs}.${found.ctimeNs}`;
  } catch (thrown) {
    return String(codeOf(thrown));
  }
}

/** The state of the file `token`. */
export type LocalToken =
  | { readonly kind: "valid"; readonly secret: string }
  | { readonly kind: "missing" }
  /** Other users can read it, so it may be compromised. */
  | { readonly kind: "exposed" }
  | { readonly kind: "broken" };

/** Reads the file `token`. Throws if it is a symbolic link or belongs to another user. */
export function inspectLocalToken(dir: string): LocalToken {
  const found = readOwn(localTokenFile(dir));
  if (found === undefined) return { kind: "missing" };
  const secret = found.text.trim();
  if (found.open) return { kind: "exposed" };
  return isSecret(secret) ? { kind: "valid", secret } : { kind: "broken" };
}

/** The secret of the command line, or undefined if there is none. Throws if other users can read it. */
export function readLocalToken(dir: string): string | undefined {
  const local = inspectLocalToken(dir);
  if (local.kind === "valid") return local.secret;
  if (local.kind === "missing") return undefined;
  const file = localTokenFile(dir);
  const hint = "Run `belay token rotate local`, or restart the server: it creates a new one.";
  if (local.kind === "exposed") throw refused(`Other users can read ${file}, so it is not used.`, hint);
  throw new ControlError("invalid", `${file} does not contain a token.`, { hint });
}

export interface TokensChange {
  readonly tokens: readonly TokenEntry[];
  /** The new content of `token`. Null removes the file; undefined leaves it unchanged. */
  readonly local?: string | null;
}

/** Reads, changes and writes the tokens under a lock file. If `change` throws, nothing is written. */
export function changeTokens<T extends TokensChange>(
  dir: string,
  clock: Clock,
  change: (tokens: readonly TokenEntry[]) => T,
): T {
  const list = join(dir, LIST);
  try {
    return replaceTokens(dir, openExclusively(`${list}.new`, clock), change);
  } catch (thrown) {
    if (codeOf(thrown) !== "ENOSPC" && codeOf(thrown) !== "EDQUOT") throw thrown;
    throw new ControlError("store_full", `There is no space left for ${list}.`, { cause: thrown });
  }
}

/** `fd` is the new list, which this process has created exclusively. Closes it. */
function replaceTokens<T extends TokensChange>(
  dir: string,
  fd: number,
  change: (tokens: readonly TokenEntry[]) => T,
): T {
  const list = join(dir, LIST);
  try {
    const changed = change(readTokens(dir));
    const { tokens, local } = changed;
    writeFileSync(fd, encodeTokens(tokens));
    fsyncSync(fd);
    const localNew = `${localTokenFile(dir)}.new`;
    if (typeof local === "string") writeNew(localNew, `${local}\n`);
    // Another process may have broken the lock as stale in the meantime.
    if (lstatSync(`${list}.new`, { throwIfNoEntry: false })?.ino !== fstatSync(fd).ino) throw busy();
    renameSync(`${list}.new`, list);
    if (typeof local === "string") renameSync(localNew, localTokenFile(dir));
    if (local === null) rmSync(localTokenFile(dir), { force: true });
    syncDirectory(dir);
    return changed;
  } catch (thrown) {
    // After a rename the file is gone, and the file of another process must not be removed.
    if (lstatSync(`${list}.new`, { throwIfNoEntry: false })?.ino === fstatSync(fd).ino) rmSync(`${list}.new`);
    throw thrown;
  } finally {
    closeSync(fd);
  }
}

function openExclusively(path: string, clock: Clock): number {
  try {
    return openSync(path, "wx", 0o600);
  } catch (thrown) {
    if (codeOf(thrown) !== "EEXIST") throw thrown;
  }
  const left = lstatSync(path, { throwIfNoEntry: false });
  // The absolute difference, because the clock may have been set in between.
  if (left !== undefined && Math.abs(clock.now() - left.mtimeMs) < TOKENS_WRITE_MS_MAX) throw busy();
  rmSync(path, { force: true });
  try {
    return openSync(path, "wx", 0o600);
  } catch (thrown) {
    throw codeOf(thrown) === "EEXIST" ? busy() : thrown;
  }
}

const busy = (): ControlError =>
  new ControlError("busy", "Another program is changing the tokens.", { hint: "Try again." });

function writeNew(path: string, text: string): void {
  // This process holds the lock, so an existing file was left by a crashed process.
  rmSync(path, { force: true });
  const fd = openSync(path, "wx", 0o600);
  try {
    writeFileSync(fd, text);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function syncDirectory(dir: string): void {
  const fd = openSync(dir, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** The text of a file of this user, and whether other users can read it. Undefined if there is none. */
function readOwn(path: string): { readonly text: string; readonly open: boolean } | undefined {
  const fd = openNoFollow(path);
  if (fd === undefined) return undefined;
  try {
    const found = fstatSync(fd);
    if (!found.isFile()) throw refused(`${path} is not a file.`, "Remove it, or use another directory.");
    mustBeOurs(path, found);
    if (found.size > TOKENS_FILE_BYTES_MAX)
      throw refused(`${path} is too large: Belay did not write it.`, "Remove it.");
    return { text: readFileSync(fd, "utf8"), open: isOpenToOthers(found) };
  } finally {
    closeSync(fd);
  }
}

function openNoFollow(path: string): number | undefined {
  try {
    // Non-blocking: opening a pipe would wait for a writer.
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (thrown) {
    if (codeOf(thrown) === "ENOENT") return undefined;
    if (codeOf(thrown) !== "ELOOP") throw thrown;
    throw refused(`${path} is a link, which could lead to a file of another user.`, "Replace it with the file itself.");
  }
}

const codeOf = (thrown: unknown): unknown => (thrown instanceof Error && "code" in thrown ? thrown.code : undefined);
