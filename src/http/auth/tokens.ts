// The tokens of a server, with the actor of each.
//
// Invariants
// 1. A secret is in memory only while it is created or compared, and is never stored.
// 2. The file is authoritative, whichever process wrote it: a change is noticed within `TOKENS_CHECK_MS`. If the file
//    is missing or invalid, no token is valid: a typo must not undo a revocation. The private socket still works.
// 3. Every comparison checks all entries, so that its duration does not reveal which entry was close.
import { timingSafeEqual } from "node:crypto";
import { ControlError, toControlError } from "../../core/errors.ts";
import { suggest } from "../../core/suggest.ts";
import type { Clock } from "../../ports/clock.ts";
import { TOKEN_GRACE_MS_MAX, TOKENS_CHECK_MS, TOKENS_MAX } from "../limits.ts";
import { type Actor, NO_ACTOR, TOKEN_SCOPES, type TokenScope } from "../transport/http-exchange.ts";
import { openPrivateDirectory } from "./private-directory.ts";
import {
  digestOf,
  infoOf,
  isScope,
  isSecret,
  isTenant,
  isTokenName,
  makeSecret,
  makeTokenId,
  type TokenEntry,
  type TokenInfo,
} from "./token.ts";
import {
  changeTokens,
  inspectLocalToken,
  localTokenFile,
  readTokens,
  type TokensChange,
  TokensDirectory,
  versionOf,
} from "./token-file.ts";

export interface TokensOptions {
  /** The directory of `tokens.json` and `token`. Created with mode 0700 if it does not exist. */
  readonly dir: string;
  readonly clock: Clock;
  /** Called when the file cannot be read while the server is running, once for each version of the file. */
  readonly onTrouble?: (trouble: ControlError) => void;
}

export interface NewToken {
  readonly name: string;
  readonly scopes: readonly TokenScope[];
  readonly tenant?: string | undefined;
  readonly expiresAt?: number | undefined;
}

/** A new token. Its secret is available only here. */
export interface MadeToken {
  readonly secret: string;
  readonly info: TokenInfo;
}

export interface RotateOptions {
  /** How long the old secret stays valid. Default 0. */
  readonly graceMs?: number | undefined;
  /** Replaces the expiry of the token. */
  readonly expiresAt?: number | undefined;
}

/** The name of the token in the file `token`, which the command line of the same user reads. */
export const LOCAL_TOKEN = "local";

/** A valid hash, and until when it is valid. */
interface Valid {
  readonly digest: Buffer;
  readonly until: number;
  readonly actor: Actor;
}

export function openTokens(options: TokensOptions): Tokens {
  openPrivateDirectory(options.dir);
  return new Tokens(options);
}

export class Tokens {
  readonly #dir: string;
  readonly #clock: Clock;
  readonly #onTrouble: (trouble: ControlError) => void;
  /** The directory that was opened at the start. A directory that replaces it is not trusted. */
  readonly #directory: TokensDirectory;
  #valid: readonly Valid[] = [];
  #version: string;
  #checkedAt: number;
  #isClosed = false;

  constructor({ dir, clock, onTrouble = () => {} }: TokensOptions) {
    this.#dir = dir;
    this.#clock = clock;
    this.#onTrouble = onTrouble;
    this.#checkedAt = clock.elapsed();
    this.#directory = new TokensDirectory(dir);
    this.#version = this.#currentVersion();
    this.#valid = validOf(readTokens(dir));
  }

  /** Closes the directory. No token is valid afterwards. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#valid = [];
    this.#directory.close();
  }

  /** Returns the actor of a valid token. Undefined if the token is unknown, revoked or expired. */
  verify(secret: string): Actor | undefined {
    this.#check(TOKENS_CHECK_MS);
    if (!isSecret(secret)) return undefined;
    const digest = digestOf(secret);
    const actor = this.#find(digest);
    if (actor !== undefined) return actor;
    // It may be a new token, which must be valid right after it was printed. Checking the file's version is cheap.
    return this.#check(0) ? this.#find(digest) : undefined;
  }

  list(): readonly TokenInfo[] {
    return readTokens(this.#dir).map(infoOf);
  }

  add(token: NewToken): MadeToken {
    requireValid(token, this.#clock.now());
    if (token.name === LOCAL_TOKEN) throw invalid(`"${LOCAL_TOKEN}" is reserved: the server creates it itself.`);
    if (token.name === NO_ACTOR) throw invalid(`"${NO_ACTOR}" is reserved for requests without a valid token.`);
    return this.#add(token);
  }

  /** Creates a new secret for the same name. */
  rotate(name: string, { graceMs = 0, expiresAt }: RotateOptions = {}): MadeToken {
    const now = this.#clock.now();
    if (!(Number.isSafeInteger(graceMs) && graceMs >= 0 && graceMs <= TOKEN_GRACE_MS_MAX)) {
      throw invalid(`\`graceMs\` must be a whole number of milliseconds from 0 to ${TOKEN_GRACE_MS_MAX}.`);
    }
    requireLater(expiresAt, now);
    const secret = makeSecret();
    const info = this.#change((tokens) => {
      const old = entryOf(tokens, name);
      const entry: TokenEntry = {
        ...infoOf(old),
        lastRotatedAt: now,
        ...(expiresAt === undefined ? {} : { expiresAt }),
        hash: digestOf(secret).toString("hex"),
        ...(graceMs === 0 ? {} : { previous: { hash: old.hash, until: now + graceMs } }),
      };
      const local = name === LOCAL_TOKEN ? { local: secret } : {};
      return { entry, tokens: tokens.map((one) => (one === old ? entry : one)), ...local };
    });
    return { secret, info };
  }

  /** Revokes a token: immediately in this process, and within a second in other processes that use the file. */
  revoke(name: string): TokenInfo {
    return this.#change((tokens) => {
      const entry = entryOf(tokens, name);
      const local = name === LOCAL_TOKEN ? { local: null } : {};
      return { entry, tokens: tokens.filter((one) => one !== entry), ...local };
    });
  }

  /**
   * Ensures that `token` contains a valid secret for the command line of this user, and returns its path. A secret that
   * other users could read, or that is not in the list, is replaced.
   */
  ensureLocal(): { readonly file: string; readonly made: boolean } {
    const file = localTokenFile(this.#dir);
    const local = inspectLocalToken(this.#dir);
    if (local.kind === "valid" && this.verify(local.secret)?.name === LOCAL_TOKEN) return { file, made: false };
    if (this.list().some(({ name }) => name === LOCAL_TOKEN)) this.rotate(LOCAL_TOKEN);
    else this.#add({ name: LOCAL_TOKEN, scopes: TOKEN_SCOPES });
    return { file, made: true };
  }

  /** Checks the file immediately. Without this call a change is noticed within `TOKENS_CHECK_MS`. */
  reload(): void {
    this.#check(0);
  }

  #add({ name, scopes, tenant, expiresAt }: NewToken): MadeToken {
    const now = this.#clock.now();
    const secret = makeSecret();
    const info = this.#change((tokens) => {
      if (tokens.length >= TOKENS_MAX) throw invalid(`There are already ${TOKENS_MAX} tokens. Revoke some.`);
      if (tokens.some((one) => one.name === name)) {
        const hint = "Use another name, or `belay token rotate` for a new secret.";
        throw new ControlError("conflict", `The token "${name}" already exists.`, { hint });
      }
      const entry: TokenEntry = {
        id: makeTokenId(),
        name,
        scopes: [...new Set(scopes)],
        ...(tenant === undefined ? {} : { tenant }),
        createdAt: now,
        lastRotatedAt: now,
        ...(expiresAt === undefined ? {} : { expiresAt }),
        hash: digestOf(secret).toString("hex"),
      };
      return { entry, tokens: [...tokens, entry], ...(name === LOCAL_TOKEN ? { local: secret } : {}) };
    });
    return { secret, info };
  }

  #change(change: (tokens: readonly TokenEntry[]) => TokensChange & { readonly entry: TokenEntry }): TokenInfo {
    this.#requireSameDirectory();
    const { entry } = changeTokens(this.#dir, this.#clock, change);
    this.#check(0);
    return infoOf(entry);
  }

  #find(digest: Buffer): Actor | undefined {
    const now = this.#clock.now();
    let found: Actor | undefined;
    for (const valid of this.#valid) {
      if (timingSafeEqual(valid.digest, digest) && now < valid.until) found = valid.actor;
    }
    return found;
  }

  #requireSameDirectory(): void {
    if (this.#directory.look() === "same") return;
    throw new ControlError("forbidden", `${this.#dir} is not the directory that it was when the server started.`, {
      hint: "No token is valid until it is back. Find out which program has renamed or replaced it.",
    });
  }

  #currentVersion(): string {
    return `${this.#directory.look()} ${versionOf(this.#directory.through)}`;
  }

  /** Checks whether the file has changed, unless the last check is less than `ageMs` old. Returns whether it had. */
  #check(ageMs: number): boolean {
    const now = this.#clock.elapsed();
    if (this.#isClosed || now - this.#checkedAt < ageMs) return false;
    this.#checkedAt = now;
    const version = this.#currentVersion();
    if (version === this.#version) return false;
    try {
      const tokens = readTokens(this.#directory.through);
      this.#requireSameDirectory();
      this.#valid = validOf(tokens);
    } catch (thrown) {
      // Running out of file handles does not invalidate the tokens: the file is checked again later.
      if (isShortage(thrown)) return false;
      this.#valid = [];
      this.#onTrouble(toControlError(thrown));
    }
    this.#version = version;
    return true;
  }
}

function validOf(tokens: readonly TokenEntry[]): readonly Valid[] {
  return tokens.flatMap(({ name, scopes, tenant, hash, previous, expiresAt = Number.POSITIVE_INFINITY }) => {
    const actor: Actor = { name, scopes: new Set(scopes), tenant };
    const now = { digest: Buffer.from(hash, "hex"), until: expiresAt, actor };
    if (previous === undefined) return [now];
    return [now, { digest: Buffer.from(previous.hash, "hex"), until: Math.min(previous.until, expiresAt), actor }];
  });
}

function entryOf(tokens: readonly TokenEntry[], name: string): TokenEntry {
  const found = tokens.find((one) => one.name === name);
  if (found !== undefined) return found;
  const near = suggest(
    name,
    tokens.map((one) => one.name),
  );
  throw new ControlError("not_found", `There is no token "${name.slice(0, 64)}".`, {
    hint: near === undefined ? "`belay token list` lists all tokens." : `Did you mean "${near}"?`,
  });
}

function requireValid({ name, scopes, tenant, expiresAt }: NewToken, now: number): void {
  if (!isTokenName(name)) {
    throw invalid("The name of a token must be 1 to 64 lower-case letters, digits, dots, hyphens and underscores.");
  }
  if (scopes.length === 0 || !scopes.every(isScope)) {
    throw invalid(`A token must have at least one scope of ${TOKEN_SCOPES.join(", ")}.`);
  }
  if (tenant !== undefined && !isTenant(tenant)) {
    throw invalid("A tenant must be 1 to 32 lower-case letters, digits and hyphens, and must not start with a hyphen.");
  }
  requireLater(expiresAt, now);
}

function requireLater(expiresAt: number | undefined, now: number): void {
  if (expiresAt === undefined || (Number.isSafeInteger(expiresAt) && expiresAt > now)) return;
  throw invalid("`expiresAt` must be a whole number of milliseconds, later than now.");
}

const invalid = (message: string): ControlError => new ControlError("invalid", message);

const isShortage = (thrown: unknown): boolean =>
  thrown instanceof Error && "code" in thrown && ["EMFILE", "ENFILE", "ENOMEM"].includes(String(thrown.code));
