// The entries of `tokens.json` and their encoding. The secret of a token is never stored, only its hash.
import { createHash, randomBytes } from "node:crypto";
import { ControlError } from "../../core/errors.ts";
import { TOKENS_MAX } from "../limits.ts";
import { TOKEN_SCOPES, type TokenScope } from "../transport/http-exchange.ts";

export interface TokenEntry extends TokenInfo {
  /** SHA-256 in hex. 256 random bits need no salt and no slow hash. */
  readonly hash: string;
  /** The secret before the last rotation, while it is still valid. */
  readonly previous?: { readonly hash: string; readonly until: number };
}

/** The public part of a token. Times are milliseconds of the wall clock. */
export interface TokenInfo {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly TokenScope[];
  /** Undefined: the whole server. */
  readonly tenant?: string;
  readonly createdAt: number;
  readonly lastRotatedAt: number;
  readonly expiresAt?: number;
}

const PREFIX = "belay_";
const SECRET_BYTES = 32;
const NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/;
const TENANT = /^[a-z0-9][a-z0-9-]{0,31}$/;
const ID = /^tok_[A-Za-z0-9_-]{1,32}$/;
const HASH = /^[0-9a-f]{64}$/;

/** The prefix lets secret scanners find tokens in commits and logs. */
export const makeSecret = (): string => PREFIX + randomBytes(SECRET_BYTES).toString("base64url");

export const makeTokenId = (): string => `tok_${randomBytes(9).toString("base64url")}`;

export const isSecret = (text: string): boolean => /^belay_[A-Za-z0-9_-]{43}$/.test(text);

export const digestOf = (secret: string): Buffer => createHash("sha256").update(secret, "utf8").digest();

export const isTokenName = (name: string): boolean => NAME.test(name);

export const isTenant = (tenant: string): boolean => TENANT.test(tenant);

export const isScope = (scope: unknown): scope is TokenScope => TOKEN_SCOPES.some((known) => known === scope);

export const infoOf = ({ hash: _, previous: __, ...info }: TokenEntry): TokenInfo => info;

export const encodeTokens = (tokens: readonly TokenEntry[]): string =>
  `${JSON.stringify({ version: 1, tokens }, undefined, 2)}\n`;

/**
 * Decodes `tokens.json`, all or nothing: a file with one invalid entry may also lack a restriction in another one. A
 * later version is refused for the same reason.
 */
export function decodeTokens(text: string): readonly TokenEntry[] {
  const file = record(parsed(text));
  if (file?.version !== 1) throw unreadable("it does not have version 1");
  const list = file.tokens;
  if (!Array.isArray(list)) throw unreadable("it has no list of tokens");
  if (list.length > TOKENS_MAX) throw unreadable(`it has more than ${TOKENS_MAX} tokens`);
  const entries = list.map(decodeEntry);
  if (new Set(entries.map(({ name }) => name)).size < entries.length) throw unreadable("two tokens have the same name");
  return entries;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw unreadable("it is not JSON");
  }
}

function decodeEntry(value: unknown, index: number): TokenEntry {
  const field = record(value) ?? {};
  const wrong = (what: string): ControlError => unreadable(`token ${index + 1} has no valid ${what}`);
  const matching = (name: string, pattern: RegExp): string => {
    const found = field[name];
    if (typeof found === "string" && pattern.test(found)) return found;
    throw wrong(name);
  };
  const scopes = field.scopes;
  if (!Array.isArray(scopes) || scopes.length > TOKEN_SCOPES.length || !scopes.every(isScope)) throw wrong("scopes");
  const time = (name: string, from: Readonly<Record<string, unknown>> = field): number => {
    const found = from[name];
    if (typeof found === "number" && Number.isSafeInteger(found) && found >= 0) return found;
    throw wrong(name);
  };
  return {
    id: matching("id", ID),
    name: matching("name", NAME),
    scopes,
    ...(field.tenant === undefined ? {} : { tenant: matching("tenant", TENANT) }),
    createdAt: time("createdAt"),
    lastRotatedAt: time("lastRotatedAt"),
    ...(field.expiresAt === undefined ? {} : { expiresAt: time("expiresAt") }),
    hash: matching("hash", HASH),
    ...decodePrevious(field.previous, time, wrong),
  };
}

function decodePrevious(
  value: unknown,
  time: (name: string, from: Readonly<Record<string, unknown>>) => number,
  wrong: (what: string) => ControlError,
): Pick<TokenEntry, "previous"> {
  if (value === undefined) return {};
  const previous = record(value);
  const hash = previous?.hash;
  if (previous === undefined || typeof hash !== "string" || !HASH.test(hash)) throw wrong("previous");
  return { previous: { hash, until: time("until", previous) } };
}

function record(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  // The only cast in this file: an object from JSON.parse has string keys.
  return value as Readonly<Record<string, unknown>>;
}

const unreadable = (why: string): ControlError =>
  new ControlError("invalid", `tokens.json cannot be read: ${why}.`, {
    hint: "Restore it from a backup, or remove it: that revokes all tokens, and you can add new ones.",
  });
