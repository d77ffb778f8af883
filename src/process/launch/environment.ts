// The environment of a child: built up from a list of what may be in it, never inherited (G35).
import { ControlError } from "../../core/errors.ts";
import { ARGUMENT_BYTES_MAX, ARGUMENT_OVERHEAD_BYTES } from "../../core/limits.ts";
import type { ProcessId } from "../../core/model/ids.ts";
import type { Inherit } from "../../ports/spawner.ts";
import {
  COOKIE_CHARS_MAX,
  COOKIES_MAX,
  ENVIRONMENT_BYTES_MAX,
  ENVIRONMENT_NAME_CHARS_MAX,
  ENVIRONMENT_NAMES_MAX,
} from "../limits.ts";

/** The variable by which a child is found again, wherever it has gone. */
export const COOKIE_NAME = "BELAY_PROCESS";

export interface EnvironmentOptions {
  /** What this one child gets on top. */
  readonly given?: Readonly<Record<string, string>> | undefined;
  /** Everything of the server's environment, or of this one, that is not Belay's own. */
  readonly inherit?: Inherit | undefined;
  /** Names the operator lets through from the server's environment; `AWS_*` stands for all that begin so. */
  readonly allow?: readonly string[] | undefined;
  /** The server's own environment. */
  readonly from: Readonly<Record<string, string | undefined>>;
  readonly cookie: string;
  /** Whether it will have a terminal. */
  readonly terminal?: boolean | undefined;
}

/** The environment of one child. Throws `invalid` for names and values that no child can have. */
export function childEnvironment(options: EnvironmentOptions): Readonly<Record<string, string>> {
  const env = new Map<string, string>([["PATH", PATH_DEFAULT]]);
  const patterns = [...ALLOWED, ...(options.allow ?? []).map(checkAllowed)];
  const { inherit = "listed", from } = options;
  take(env, from, (name) => patterns.some((pattern) => lets(pattern, name)));
  if (inherit === "listed") quieten(env, options.terminal === true);
  else take(env, inherit === "all" ? from : inherit, isUsers);
  for (const [name, value] of Object.entries(options.given ?? {})) {
    checkGiven(name, value);
    // A child without a PATH finds nothing, and says so in a hundred ways. Nobody means that.
    if (name !== "PATH" || value !== "") env.set(name, value);
  }
  // Whoever asks for colours gets them; with both set, some programs complain about it.
  if (options.given?.FORCE_COLOR !== undefined && options.given.NO_COLOR === undefined) env.delete("NO_COLOR");
  env.set(COOKIE_NAME, [...outerCookies(options.from[COOKIE_NAME]), options.cookie].join(" "));
  checkSize(env);
  return Object.fromEntries(env);
}

function take(env: Map<string, string>, from: EnvironmentOptions["from"], isMeant: (name: string) => boolean): void {
  for (const [name, value] of Object.entries(from)) {
    if (value !== undefined && value !== "" && isMeant(name)) env.set(name, value);
  }
}

function quieten(env: Map<string, string>, terminal: boolean): void {
  for (const [name, value] of Object.entries(QUIET)) env.set(name, value);
  env.set("TERM", terminal ? "xterm-256color" : "dumb");
  if (!terminal) env.set("NO_COLOR", "1");
}

/** The mark of one process. `random` makes it different from that of any other life of the same id. */
export function makeCookie(id: ProcessId, random: string): string {
  const cookie = `${id}:${random}`;
  if (!isCookie(cookie)) throw new ControlError("invalid", "A cookie is an id, a colon, and letters and digits.");
  return cookie;
}

/** A process's id, a colon, and something that nobody else has: nothing that a space or a NUL could split. */
export const isCookie = (text: string): boolean =>
  text.length <= COOKIE_CHARS_MAX && /^proc_[A-Za-z0-9_.-]+:[A-Za-z0-9_-]+$/.test(text);

/**
 * The cookies in the environment of a process, as the kernel shows it. More than one if a Belay was started by a Belay:
 * its children are also those of the outer one, and end with it.
 */
export function cookiesIn(environ: Buffer): readonly string[] {
  const found: string[] = [];
  // Looked for instead of taken apart: an environment may have six megabytes, and everybody's is looked at.
  for (let at = environ.indexOf(ENTRY); at >= 0; at = environ.indexOf(ENTRY, at + ENTRY.length)) {
    if (at > 0 && environ[at - 1] !== 0) continue;
    const end = environ.indexOf(0, at);
    const value = environ.subarray(at + ENTRY.length, end < 0 ? environ.length : end);
    if (value.length <= COOKIES_MAX * (COOKIE_CHARS_MAX + 1)) found.push(...value.toString("latin1").split(" "));
  }
  return found;
}

const ENTRY = `${COOKIE_NAME}=`;

/** Where a server has none itself: what the usual shells assume. */
const PATH_DEFAULT = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Where things are, who we are, and how this place writes dates. No secret is ever kept in these. */
const ALLOWED = ["PATH", "HOME", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL"];

/**
 * Nobody sits before it: no pager, no editor, no question. `CI` is what most tools ask before they ask a person.
 * NO_COLOR besides TERM=dumb, because some tools colour whenever they see CI, and escape sequences cost a model tokens
 * and tell it nothing; not with a terminal, which is asked for to see what a person would see.
 * Not npm_config_yes and the like: agreeing to things in somebody's name is another matter than not asking.
 */
const QUIET: Readonly<Record<string, string>> = {
  CI: "1",
  DEBIAN_FRONTEND: "noninteractive",
  EDITOR: "true",
  GIT_EDITOR: "true",
  GIT_PAGER: "cat",
  GIT_SEQUENCE_EDITOR: "true",
  GIT_TERMINAL_PROMPT: "0",
  PAGER: "cat",
  PIP_NO_INPUT: "1",
  VISUAL: "true",
};

/** Names of which a pattern never speaks: only whoever writes such a name in full means it. */
const SECRET =
  /KEY|TOKEN|SECRET|PASS|PWD|CREDENTIAL|AUTH(?!OR)|COOKIE|SESSION|PRIVATE|SIGNATURE|DSN|(DATABASE|REDIS)_?UR[IL]/i;

/**
 * What changes the programs that hold the child, and not only the child itself: they are started with its environment,
 * before they hold anything.
 */
const BENDS =
  /^(LD_.*|DYLD_.*|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|BASH_ENV|BASH_FUNC_.*|ENV|IFS|PS4|SHELLOPTS|BASHOPTS|PERL.*)$/;

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

function lets(pattern: string, name: string): boolean {
  if (pattern === name) return true;
  return pattern.endsWith("*") && name.startsWith(pattern.slice(0, -1)) && NAME.test(name) && isHarmless(name);
}

/** What a program of the user's gets besides: not Belay's own variables, nor what bends those who hold it. */
const isUsers = (name: string): boolean => NAME.test(name) && !BENDS.test(name) && !name.startsWith("BELAY_");

const isHarmless = (name: string): boolean => !SECRET.test(name) && !BENDS.test(name);

function checkAllowed(pattern: string): string {
  const name = pattern.endsWith("*") ? pattern.slice(0, -1) : pattern;
  if (!NAME.test(name)) {
    throw invalid(`"${brief(pattern)}" lets no variable through: name one, or write how several begin, like LC_*.`);
  }
  refuseReserved(name);
  return pattern;
}

function checkGiven(name: string, value: unknown): void {
  if (!NAME.test(name) || name.length > ENVIRONMENT_NAME_CHARS_MAX) {
    throw invalid(`"${brief(name)}" is no name for a variable: letters, digits and underscores, no digit first.`);
  }
  refuseReserved(name);
  if (typeof value !== "string") throw invalid(`The variable ${name} is not a text.`);
  // The value is not repeated in any of these: it may be a secret.
  if (value.includes("\0")) throw invalid(`The variable ${name} holds a NUL byte, which would end it there.`);
  if (!value.isWellFormed()) throw invalid(`The variable ${name} is not well-formed Unicode.`);
}

function refuseReserved(name: string): void {
  if (name === COOKIE_NAME) throw invalid(`${COOKIE_NAME} is how Belay finds its processes; it cannot be set.`);
  if (!BENDS.test(name)) return;
  throw invalid(`${name} would also act on the programs that hold the process, so it is not passed on.`, {
    hint: `Set it within the command: env ${name}=… program.`,
  });
}

function checkSize(env: ReadonlyMap<string, string>): void {
  if (env.size > ENVIRONMENT_NAMES_MAX) {
    throw invalid(`The environment has ${env.size} variables; at most ${ENVIRONMENT_NAMES_MAX} are taken.`);
  }
  let bytes = 0;
  for (const [name, value] of env) {
    const own = Buffer.byteLength(name) + 1 + Buffer.byteLength(value);
    if (own >= ARGUMENT_BYTES_MAX) {
      throw invalid(`The variable ${name} has ${own} bytes; the system takes less than ${ARGUMENT_BYTES_MAX}.`);
    }
    bytes += own + ARGUMENT_OVERHEAD_BYTES;
  }
  if (bytes > ENVIRONMENT_BYTES_MAX) {
    throw invalid(`The environment has ${bytes} bytes; at most ${ENVIRONMENT_BYTES_MAX} are taken.`);
  }
}

/** Those that the server itself was started with; the outermost ones, if somebody nests without an end. */
const outerCookies = (value: string | undefined): readonly string[] =>
  (value ?? "")
    .split(" ")
    .filter(isCookie)
    .slice(0, COOKIES_MAX - 1);

const brief = (text: string): string => JSON.stringify(text.slice(0, 40)).slice(1, -1);

const invalid = (message: string, options?: { readonly hint: string }): ControlError =>
  new ControlError("invalid", message, options);
