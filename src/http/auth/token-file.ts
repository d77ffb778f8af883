// `tokens.json` and `token` on disk: read without following links, written whole or not at all.
//
// Invariants
// 1. Only one program writes at a time: whoever has made `tokens.json.new` does.
// 2. Both files are 0600 from their first byte on, and are ours, or they are not read.
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

/** Where the secret for the command line of the same user lies. */
export const localTokenFile = (dir: string): string => join(dir, LOCAL);

/**
 * A directory of tokens that is held open. So its number is not given to another, and what is read through it is read
 * from this one, whatever is at its path meanwhile.
 */
export class TokensDirectory {
  readonly #path: string;
  readonly #fd: number;
  readonly #identity: string;
  /** Another path of it. Where there is no /proc, its own. */
  readonly through: string;

  constructor(path: string) {
    this.#path = path;
    this.#fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    this.#identity = identityOf(fstatSync(this.#fd, { bigint: true }));
    const through = `/proc/self/fd/${this.#fd}`;
    this.through = existsSync(through) ? through : path;
  }

  /** What stands at its path now: `same`, or something that tells other directories and troubles apart. */
  look(): string {
    const found = directoryOf(this.#path);
    return found === this.#identity ? "same" : found;
  }

  close(): void {
    closeSync(this.#fd);
  }
}

const identityOf = ({ dev, ino }: BigIntStats): string => `${dev}.${ino}`;

/** The entries; none if there is no file. */
export function readTokens(dir: string): readonly TokenEntry[] {
  const list = join(dir, LIST);
  const found = readOwn(list);
  // Hashes of 256 random bits are of no use to others, so the file can stay as it is; but it need not be shown around.
  if (found?.open === true) chmodSync(list, 0o600);
  return found === undefined ? [] : decodeTokens(found.text);
}

function directoryOf(dir: string): string {
  try {
    const found = lstatSync(dir, { bigint: true, throwIfNoEntry: false });
    return found === undefined ? "none" : identityOf(found);
  } catch (thrown) {
    return String(codeOf(thrown));
  }
}

/** What changes whenever the file does. A file that cannot be looked at has a version too: that of its trouble. */
export function versionOf(dir: string): string {
  try {
    const found = lstatSync(join(dir, LIST), { bigint: true, throwIfNoEntry: false });
    if (found === undefined) return "none";
    return `${found.dev}.${found.ino}.${found.size}.${found.mtimeNs}.${found.ctimeNs}`;
  } catch (thrown) {
    return String(codeOf(thrown));
  }
}

/** What `token` is good for. A link, or a file of another user, is refused with an error. */
export type LocalToken =
  | { readonly kind: "held"; readonly secret: string }
  | { readonly kind: "missing" }
  /** Others can read it, so it has been theirs too. */
  | { readonly kind: "exposed" }
  | { readonly kind: "broken" };

export function lookAtLocalToken(dir: string): LocalToken {
  const found = readOwn(localTokenFile(dir));
  if (found === undefined) return { kind: "missing" };
  const secret = found.text.trim();
  if (found.open) return { kind: "exposed" };
  return isSecret(secret) ? { kind: "held", secret } : { kind: "broken" };
}

/** The secret of the command line; undefined if there is none. One that others can read is not used. */
export function readLocalToken(dir: string): string | undefined {
  const local = lookAtLocalToken(dir);
  if (local.kind === "held") return local.secret;
  if (local.kind === "missing") return undefined;
  const file = localTokenFile(dir);
  const hint = "Run `belay token rotate local`, or start the server again: it makes a new one.";
  if (local.kind === "exposed") throw refused(`Others can read ${file}, so it is not used.`, hint);
  throw new ControlError("invalid", `${file} does not hold a token.`, { hint });
}

export interface Change {
  readonly tokens: readonly TokenEntry[];
  /** What `token` holds from now on; null: it is removed; undefined: it stays as it is. */
  readonly local?: string | null;
}

/** Reads, changes and writes while nobody else does. A change that throws leaves everything as it was. */
export function changeTokens<T extends Change>(
  dir: string,
  clock: Clock,
  change: (tokens: readonly TokenEntry[]) => T,
): T {
  const list = join(dir, LIST);
  try {
    return replaceTokens(dir, openAlone(`${list}.new`, clock), change);
  } catch (thrown) {
    if (codeOf(thrown) !== "ENOSPC" && codeOf(thrown) !== "EDQUOT") throw thrown;
    throw new ControlError("store_full", `There is no space left for ${list}.`, { cause: thrown });
  }
}

/** `fd` is the new list, made by us alone. Closes it. */
function replaceTokens<T extends Change>(dir: string, fd: number, change: (tokens: readonly TokenEntry[]) => T): T {
  const list = join(dir, LIST);
  try {
    const changed = change(readTokens(dir));
    const { tokens, local } = changed;
    writeFileSync(fd, encodeTokens(tokens));
    fsyncSync(fd);
    const localNew = `${localTokenFile(dir)}.new`;
    if (typeof local === "string") writeNew(localNew, `${local}\n`);
    // Somebody may have taken us for dead in the meantime.
    if (lstatSync(`${list}.new`, { throwIfNoEntry: false })?.ino !== fstatSync(fd).ino) throw busy();
    renameSync(`${list}.new`, list);
    if (typeof local === "string") renameSync(localNew, localTokenFile(dir));
    if (local === null) rmSync(localTokenFile(dir), { force: true });
    syncDirectory(dir);
    return changed;
  } catch (thrown) {
    // A rename that has happened has left nothing here to remove; and another's file is not ours to remove.
    if (lstatSync(`${list}.new`, { throwIfNoEntry: false })?.ino === fstatSync(fd).ino) rmSync(`${list}.new`);
    throw thrown;
  } finally {
    closeSync(fd);
  }
}

function openAlone(path: string, clock: Clock): number {
  try {
    return openSync(path, "wx", 0o600);
  } catch (thrown) {
    if (codeOf(thrown) !== "EEXIST") throw thrown;
  }
  const left = lstatSync(path, { throwIfNoEntry: false });
  // However the clock was set in between.
  if (left !== undefined && Math.abs(clock.now() - left.mtimeMs) < TOKENS_WRITE_MS_MAX) throw busy();
  rmSync(path, { force: true });
  try {
    return openSync(path, "wx", 0o600);
  } catch (thrown) {
    throw codeOf(thrown) === "EEXIST" ? busy() : thrown;
  }
}

const busy = (): ControlError =>
  new ControlError("busy", "Another program is changing the tokens at this moment.", { hint: "Try again." });

function writeNew(path: string, text: string): void {
  // Ours alone, since we hold the other one: what is here was left by somebody who died.
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

/** The text of a file of ours, and whether others could read it; undefined if there is none. */
function readOwn(path: string): { readonly text: string; readonly open: boolean } | undefined {
  const fd = openUnlinked(path);
  if (fd === undefined) return undefined;
  try {
    const found = fstatSync(fd);
    if (!found.isFile()) throw refused(`${path} is not a file.`, "Remove it, or name another directory.");
    mustBeOurs(path, found);
    if (found.size > TOKENS_FILE_BYTES_MAX) throw refused(`${path} is too large to be ours.`, "Look what it is.");
    return { text: readFileSync(fd, "utf8"), open: isOpenToOthers(found) };
  } finally {
    closeSync(fd);
  }
}

function openUnlinked(path: string): number | undefined {
  try {
    // Without waiting: a pipe in its place would keep us waiting for somebody to write.
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (thrown) {
    if (codeOf(thrown) === "ENOENT") return undefined;
    if (codeOf(thrown) !== "ELOOP") throw thrown;
    throw refused(`${path} is a link; whose file it leads to is anybody's guess.`, "Put the file itself there.");
  }
}

const codeOf = (thrown: unknown): unknown => (thrown instanceof Error && "code" in thrown ? thrown.code : undefined);
