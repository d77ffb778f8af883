// `belay token`: who may ask this home's server for what. A secret is shown once, when it is made.
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
import { spanMs } from "./token-time.ts";

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

export interface AddFlags extends TokenFlags {
  readonly scope: readonly string[];
  readonly tenant?: string;
  readonly expires?: string;
}

export function addToken(name: string, flags: AddFlags): number {
  const scopes = [...new Set(flags.scope.flatMap((words) => words.split(",")).map(scopeOf))];
  const { tenant, expires } = flags;
  const expiresAt = expires === undefined ? undefined : systemClock.now() + spanMs(expires, "--expires");
  return tell(tokensOf(flags).add({ name, scopes, tenant, expiresAt }), flags);
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

/** A running server takes the new one by itself, within a second. */
export function rotateToken(name: string, flags: RotateFlags): number {
  const graceMs = flags.grace === undefined ? 0 : spanMs(flags.grace, "--grace");
  const made = tokensOf(flags).rotate(name, { graceMs });
  // That of this user's command line is in its file already, and is wanted nowhere else.
  if (name === LOCAL_TOKEN) return changed(made.info, "rotated", flags);
  return tell(made, flags);
}

export function revokeToken(name: string, flags: TokenFlags): number {
  tokensOf(flags).revoke(name);
  if (flags.json) print(JSON.stringify({ revoked: name }));
  else print(`${name} is revoked. A running server refuses it within a second.`);
  return EXIT_OK;
}

/** Where it can be read over a shoulder or end up in a log by accident, it has to be asked for twice. */
export function showToken(flags: TokenFlags & { readonly plain?: boolean }): number {
  const home = homeOf(flags);
  const secret = readLocalToken(home.dir);
  if (secret === undefined) {
    throw new ControlError("not_found", `There is no token in ${home.tokenFile}.`, {
      hint: "The server makes one when it starts: belay serve.",
    });
  }
  if (flags.plain !== true && process.stdout.isTTY !== true) {
    throw new ControlError("invalid", "The token is not written to what is no terminal, unless you insist.", {
      hint: `Use --plain; or read it where it is needed: "$(cat ${home.tokenFile})".`,
    });
  }
  print(secret);
  return EXIT_OK;
}

/** The secret alone on stdout, so that it can be piped to where it belongs; it is not shown again. */
function tell({ secret, info }: MadeToken, { json }: TokenFlags): number {
  if (json) print(JSON.stringify({ token: info, secret }));
  else {
    const tenant = info.tenant === undefined ? "the whole house" : `tenant ${info.tenant}`;
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
