// The tokens of a server: who holds which, and what it is good for.
//
// Invariants
// 1. A secret is known here while it is made and while it is compared, and kept nowhere.
// 2. What the file says counts, whoever wrote it: a change is noticed within `TOKENS_CHECK_MS`. If it is gone or makes
//    no sense, no token is valid: a revocation must not be undone by a slip of the pen. The private socket still works.
// 3. Every comparison looks at all entries, so that its time says nothing about which one was near.
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
  type Change,
  changeTokens,
  localTokenFile,
  lookAtLocalToken,
  readTokens,
  TokensDirectory,
  versionOf,
} from "./token-file.ts";

export interface TokensOptions {
  /** Where `tokens.json` and `token` lie. Made if it is missing; closed to others. */
  readonly dir: string;
  readonly clock: Clock;
  /** The file could not be read while the server was running. Told once for each version of it. */
  readonly onTrouble?: (trouble: ControlError) => void;
}

export interface NewToken {
  readonly name: string;
  readonly scopes: readonly TokenScope[];
  readonly tenant?: string | undefined;
  readonly expiresAt?: number | undefined;
}

/** The secret is shown here, once. */
export interface MadeToken {
  readonly secret: string;
  readonly info: TokenInfo;
}

export interface RotateOptions {
  /** How long the old secret goes on. Default: it ends at once. */
  readonly graceMs?: number | undefined;
  /** Replaces the end the token had. */
  readonly expiresAt?: number | undefined;
}

/** The name of the token that the command line of the same user finds beside the list. */
export const LOCAL_TOKEN = "local";

/** What is compared with: a hash, for as long as it counts. */
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
  /** As it was at the start. Another one in its place may be anybody's. */
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
    this.#version = this.#look();
    this.#valid = validOf(readTokens(dir));
  }

  /** No token is valid from now on. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#valid = [];
    this.#directory.close();
  }

  /** Whose it is; undefined if it is nobody's, or not any more. */
  verify(secret: string): Actor | undefined {
    this.#check(TOKENS_CHECK_MS);
    if (!isSecret(secret)) return undefined;
    const digest = digestOf(secret);
    const actor = this.#find(digest);
    if (actor !== undefined) return actor;
    // It may have been added a moment ago. One look at the file's version is cheap, and a token that was just printed
    // must not be refused.
    return this.#check(0) ? this.#find(digest) : undefined;
  }

  list(): readonly TokenInfo[] {
    return readTokens(this.#dir).map(infoOf);
  }

  add(wanted: NewToken): MadeToken {
    mustBeSound(wanted, this.#clock.now());
    if (wanted.name === LOCAL_TOKEN) throw invalid(`"${LOCAL_TOKEN}" is the server's own; it makes it by itself.`);
    if (wanted.name === NO_ACTOR) throw invalid(`"${NO_ACTOR}" is the actor of requests without a valid token.`);
    return this.#add(wanted);
  }

  /** A new secret for the same name. */
  rotate(name: string, { graceMs = 0, expiresAt }: RotateOptions = {}): MadeToken {
    const now = this.#clock.now();
    if (!(Number.isSafeInteger(graceMs) && graceMs >= 0 && graceMs <= TOKEN_GRACE_MS_MAX)) {
      throw invalid(`The old secret goes on for 0 to ${TOKEN_GRACE_MS_MAX} whole milliseconds.`);
    }
    mustBeLater(expiresAt, now);
    const secret = makeSecret();
    const info = this.#change((tokens) => {
      const old = known(tokens, name);
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

  /** Ends it at once here, and within a second in every other program that has the file open. */
  revoke(name: string): TokenInfo {
    return this.#change((tokens) => {
      const entry = known(tokens, name);
      const local = name === LOCAL_TOKEN ? { local: null } : {};
      return { entry, tokens: tokens.filter((one) => one !== entry), ...local };
    });
  }

  /**
   * Sees to it that `token` holds a valid secret for this user's command line, and answers where it lies. One that
   * others could read, or that does not fit the list, is replaced.
   */
  ensureLocal(): { readonly file: string; readonly made: boolean } {
    const file = localTokenFile(this.#dir);
    const local = lookAtLocalToken(this.#dir);
    if (local.kind === "held" && this.verify(local.secret)?.name === LOCAL_TOKEN) return { file, made: false };
    if (this.list().some(({ name }) => name === LOCAL_TOKEN)) this.rotate(LOCAL_TOKEN);
    else this.#add({ name: LOCAL_TOKEN, scopes: TOKEN_SCOPES });
    return { file, made: true };
  }

  /** Looks at the file now. Without it a change is noticed a moment later. */
  reload(): void {
    this.#check(0);
  }

  #add({ name, scopes, tenant, expiresAt }: NewToken): MadeToken {
    const now = this.#clock.now();
    const secret = makeSecret();
    const info = this.#change((tokens) => {
      if (tokens.length >= TOKENS_MAX) throw invalid(`There are ${TOKENS_MAX} tokens already. Revoke some.`);
      if (tokens.some((one) => one.name === name)) {
        const hint = "Use another name, or `belay token rotate` for a new secret.";
        throw new ControlError("conflict", `There is a token "${name}" already.`, { hint });
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

  #change(change: (tokens: readonly TokenEntry[]) => Change & { readonly entry: TokenEntry }): TokenInfo {
    this.#mustBeSame();
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

  #mustBeSame(): void {
    if (this.#directory.look() === "same") return;
    throw new ControlError("forbidden", `${this.#dir} is not the directory that it was when the server started.`, {
      hint: "No token is valid until it is back. Find out which program has renamed or replaced it.",
    });
  }

  #look(): string {
    return `${this.#directory.look()} ${versionOf(this.#directory.through)}`;
  }

  /** Looks whether the file has changed, unless that was looked at less than `ageMs` ago. Answers whether it had. */
  #check(ageMs: number): boolean {
    const now = this.#clock.elapsed();
    if (this.#isClosed || now - this.#checkedAt < ageMs) return false;
    this.#checkedAt = now;
    const version = this.#look();
    if (version === this.#version) return false;
    try {
      const tokens = readTokens(this.#directory.through);
      this.#mustBeSame();
      this.#valid = validOf(tokens);
    } catch (thrown) {
      // A machine that is out of file handles says nothing about the tokens: the file is looked at again.
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

function known(tokens: readonly TokenEntry[], name: string): TokenEntry {
  const found = tokens.find((one) => one.name === name);
  if (found !== undefined) return found;
  const near = suggest(
    name,
    tokens.map((one) => one.name),
  );
  throw new ControlError("not_found", `There is no token "${name.slice(0, 64)}".`, {
    hint: near === undefined ? "`belay token list` shows them." : `Did you mean "${near}"?`,
  });
}

function mustBeSound({ name, scopes, tenant, expiresAt }: NewToken, now: number): void {
  if (!isTokenName(name)) {
    throw invalid("A token is named by 1 to 64 small letters, digits, dots, hyphens and underscores.");
  }
  if (scopes.length === 0 || !scopes.every(isScope)) {
    throw invalid(`A token has one scope or more, of ${TOKEN_SCOPES.join(", ")}.`);
  }
  if (tenant !== undefined && !isTenant(tenant)) {
    throw invalid("A tenant is named by 1 to 32 small letters, digits and hyphens, the first of which is no hyphen.");
  }
  mustBeLater(expiresAt, now);
}

function mustBeLater(expiresAt: number | undefined, now: number): void {
  if (expiresAt === undefined || (Number.isSafeInteger(expiresAt) && expiresAt > now)) return;
  throw invalid("A token expires at a whole number of milliseconds, later than now.");
}

const invalid = (message: string): ControlError => new ControlError("invalid", message);

const isShortage = (thrown: unknown): boolean =>
  thrown instanceof Error && "code" in thrown && ["EMFILE", "ENFILE", "ENOMEM"].includes(String(thrown.code));
