// `belay token`: manages the access tokens of a data directory's server. A secret is shown once, when it is created.
import { ControlError } from "../../../core/errors.ts";
import { suggest } from "../../../core/suggest.ts";
import type { TokenInfo } from "../../../http/auth/token.ts";
import { readLocalToken } from "../../../http/auth/token-file.ts";
import { LOCAL_TOKEN, type MadeToken, openTokens, type Tokens } from "../../../http/auth/tokens.ts";
import { TOKEN_SCOPES, type TokenScope } from "../../../http/transport/http-exchange.ts";
import { type DataDir, openDataDir } from "../../../sdk/data-dir.ts";
import { systemClock } from "../../../system/system-clock.ts";
import { EXIT_OK } from "../../shared/exit-code.ts";
import { dayAndTime } from "../../shared/format/age.ts";
import { plainLine } from "../../shared/format/plain-text.ts";
import { styleOf, table } from "../../shared/format/table.ts";
import { print } from "../../shared/terminal/terminal.ts";

export interface TokenFlags {
  readonly home?: string;
  readonly json?: boolean;
}

const homeOf = ({ home }: TokenFlags): DataDir => openDataDir({ home, env: process.env });

const tokensOf = (flags: TokenFlags): Tokens => openTokens({ dir: homeOf(flags).dir, clock: systemClock });

export function listTokens(flags: TokenFlags): number {
  const tokens = tokensOf(flags).list();
  if (flags.json) print(JSON.stringify({ tokens }));
  else if (tokens.length === 0) print("There are no tokens yet. The server makes one for you when it starts.");
  else for (const line of table(COLUMNS, tokens.map(row), styleOf(process.stdout))) print(line);
  return EXIT_OK;
}

const COLUMNS = [
  { title: "NAME" },
  { title: "SCOPES" },
  { title: "TENANT" },
  { title: "MADE" },
  { title: "ROTATED" },
  { title: "EXPIRES" },
] as const;

const row = ({ name, scopes, tenant, createdAt, lastRotatedAt, expiresAt }: TokenInfo): readonly string[] => [
  ...[name, scopes.join(","), tenant ?? "", dayAndTime(createdAt)],
  lastRotatedAt === createdAt ? "" : dayAndTime(lastRotatedAt),
  expiresAt === undefined ? "" : dayAndTime(expiresAt),
];

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Ten years: for a longer span the option can be left out. */
const SPAN_MS_MAX = 3_650 * UNIT_MS.d;

/** Parses a span of time: `30d`, `12h`, `90m`. */
function spanMs(typed: string, option: string): number {
  const [, number = "", unit = ""] = /^(\d{1,9})([smhd])$/.exec(typed) ?? [];
  const ms = Number(number) * (Object.entries(UNIT_MS).find(([name]) => name === unit)?.[1] ?? 0);
  if (ms > 0 && ms <= SPAN_MS_MAX) return ms;
  throw new ControlError("invalid", `${option} is not "${plainLine(typed, 40)}".`, {
    hint: "It is a number and a unit: 90m, 12h or 30d, at most 3650d.",
  });
}

export interface AddFlags extends TokenFlags {
  readonly scope: readonly string[];
  readonly tenant?: string;
  readonly expires?: string;
}

export function addToken(name: string, flags: AddFlags): number {
  const scopes = [...new Set(flags.scope.flatMap((words) => words.split(",")).map(scopeOf))];
  const { tenant, expires } = flags;
  const expiresAt = expires === undefined ? undefined : systemClock.now() + spanMs(expires, "--expires");
  return printSecret(tokensOf(flags).add({ name, scopes, tenant, expiresAt }), flags);
}

function scopeOf(word: string): TokenScope {
  const found = TOKEN_SCOPES.find((scope) => scope === word.trim());
  if (found !== undefined) return found;
  const meant = suggest(word, TOKEN_SCOPES);
  throw new ControlError("invalid", `There is no scope "${plainLine(word, 40)}".`, {
    hint: `${meant === undefined ? "" : `Did you mean ${meant}? `}They are: ${TOKEN_SCOPES.join(", ")}.`,
  });
}

export interface RotateFlags extends TokenFlags {
  readonly grace?: string;
}

/** A running server uses the new secret within a second. */
export function rotateToken(name: string, flags: RotateFlags): number {
  const graceMs = flags.grace === undefined ? 0 : spanMs(flags.grace, "--grace");
  const made = tokensOf(flags).rotate(name, { graceMs });
  // The command line's own token is written to its file, and needed nowhere else.
  if (name === LOCAL_TOKEN) return changed(made.info, "rotated", flags);
  return printSecret(made, flags);
}

export function revokeToken(name: string, flags: TokenFlags): number {
  tokensOf(flags).revoke(name);
  if (flags.json) print(JSON.stringify({ revoked: name }));
  else print(`${name} is revoked. A running server refuses it within a second.`);
  return EXIT_OK;
}

/** Prints the command line's own token. Without a terminal it needs --plain, so that no log gets it by accident. */
export function showToken(flags: TokenFlags & { readonly plain?: boolean }): number {
  const home = homeOf(flags);
  const secret = readLocalToken(home.dir);
  if (secret === undefined) {
    throw new ControlError("not_found", `There is no token in ${home.tokenFile}.`, {
      hint: "The server makes one when it starts: belay serve.",
    });
  }
  if (flags.plain !== true && process.stdout.isTTY !== true) {
    throw new ControlError("invalid", "The token is printed only on a terminal, unless you use --plain.", {
      hint: `Use --plain, or read the file where the token is needed: "$(cat ${home.tokenFile})".`,
    });
  }
  print(secret);
  return EXIT_OK;
}

/** Prints only the secret on stdout, so that it can be piped. It is not shown again. */
function printSecret({ secret, info }: MadeToken, { json }: TokenFlags): number {
  if (json) print(JSON.stringify({ token: info, secret }));
  else {
    const tenant = info.tenant === undefined ? "the whole server" : `tenant ${info.tenant}`;
    process.stderr.write(`${info.name}: ${info.scopes.join(", ")}; ${tenant}. Shown once, kept nowhere:\n`);
    print(secret);
  }
  return EXIT_OK;
}

function changed(info: TokenInfo, what: string, { json }: TokenFlags): number {
  if (json) print(JSON.stringify({ token: info }));
  else print(`${info.name} is ${what}. The new secret is in its file; running servers know it within a second.`);
  return EXIT_OK;
}
