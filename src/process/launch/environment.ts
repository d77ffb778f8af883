// Builds the environment of a child from an allow list; it is never inherited as a whole (G35).
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

/** The variable that marks a child's processes, wherever they move. */
export const COOKIE_NAME = "BELAY_PROCESS";

export interface EnvironmentOptions {
  /** Additional variables for this child. */
  readonly given?: Readonly<Record<string, string>> | undefined;
  /** Passes on the server's environment, or this one, except Belay's own variables. */
  readonly inherit?: Inherit | undefined;
  /** Names that the operator passes on from the server's environment; `AWS_*` stands for all with that prefix. */
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
    // Without a PATH a child finds no program and fails in obscure ways, so an empty PATH is ignored.
    if (name !== "PATH" || value !== "") env.set(name, value);
  }
  // An explicit FORCE_COLOR wins; some programs complain if both are set.
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

/** The cookie of one process. `random` distinguishes it from other uses of the same id. */
export function makeCookie(id: ProcessId, random: string): string {
  const cookie = `${id}:${random}`;
  if (!isCookie(cookie)) throw new ControlError("invalid", "A cookie is an id, a colon, and letters and digits.");
  return cookie;
}

/** A process id, a colon and a unique suffix, without characters that separate cookies or variables. */
export const isCookie = (text: string): boolean =>
  text.length <= COOKIE_CHARS_MAX && /^proc_[A-Za-z0-9_.-]+:[A-Za-z0-9_-]+$/.test(text);

/**
 * The cookies in the environment of a process, as the kernel shows it. More than one if Belay was started by Belay: its
 * children also belong to the outer one, and end with it.
 */
export function cookiesIn(environ: Buffer): readonly string[] {
  const found: string[] = [];
  // Searched instead of parsed: an environment may have six megabytes, and a scan reads that of every process.
  for (let at = environ.indexOf(ENTRY); at >= 0; at = environ.indexOf(ENTRY, at + ENTRY.length)) {
    if (at > 0 && environ[at - 1] !== 0) continue;
    const end = environ.indexOf(0, at);
    const value = environ.subarray(at + ENTRY.length, end < 0 ? environ.length : end);
    if (value.length <= COOKIES_MAX * (COOKIE_CHARS_MAX + 1)) found.push(...value.toString("latin1").split(" "));
  }
  return found;
}

const ENTRY = `${COOKIE_NAME}=`;

/** For a server without a PATH: the default of the usual shells. */
const PATH_DEFAULT = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Locations, user names and locale. These never contain secrets. */
const ALLOWED = ["PATH", "HOME", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL"];

/**
 * Makes programs non-interactive: no pager, no editor, no question. Most tools check `CI` before they prompt. NO_COLOR
 * is set besides TERM=dumb, because some tools use colours whenever they see CI, and escape sequences cost a model
 * tokens without benefit; not with a terminal, which is requested for output as a person would see it. npm_config_yes
 * and the like are not set: not prompting differs from consenting.
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

/** Names that no pattern matches: the operator must name them in full. */
const SECRET =
  /KEY|TOKEN|SECRET|PASS|PWD|CREDENTIAL|AUTH(?!OR)|COOKIE|SESSION|PRIVATE|SIGNATURE|DSN|(DATABASE|REDIS)_?UR[IL]/i;

/**
 * Variables that affect the programs holding the child, and not only the child itself: those start with the same
 * environment, before they hold anything.
 */
const AFFECTS_HOLDERS =
  /^(LD_.*|DYLD_.*|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|BASH_ENV|BASH_FUNC_.*|ENV|IFS|PS4|SHELLOPTS|BASHOPTS|PERL.*)$/;

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

function lets(pattern: string, name: string): boolean {
  if (pattern === name) return true;
  return pattern.endsWith("*") && name.startsWith(pattern.slice(0, -1)) && NAME.test(name) && isHarmless(name);
}

/** Variables for a program of the user: neither Belay's own, nor those that affect the programs holding it. */
const isUsers = (name: string): boolean => NAME.test(name) && !AFFECTS_HOLDERS.test(name) && !name.startsWith("BELAY_");

const isHarmless = (name: string): boolean => !SECRET.test(name) && !AFFECTS_HOLDERS.test(name);

function checkAllowed(pattern: string): string {
  const name = pattern.endsWith("*") ? pattern.slice(0, -1) : pattern;
  if (!NAME.test(name)) {
    throw invalid(`"${brief(pattern)}" must be the name of a variable, or a prefix of several such as LC_*.`);
  }
  refuseReserved(name);
  return pattern;
}

function checkGiven(name: string, value: unknown): void {
  if (!NAME.test(name) || name.length > ENVIRONMENT_NAME_CHARS_MAX) {
    throw invalid(
      `"${brief(name)}" is not a variable name: use letters, digits and underscores, not starting with a digit.`,
    );
  }
  refuseReserved(name);
  if (typeof value !== "string") throw invalid(`The variable ${name} must be a string.`);
  // The value is not repeated in any of these messages: it may be a secret.
  if (value.includes("\0")) throw invalid(`The variable ${name} holds a NUL byte, which would end it there.`);
  if (!value.isWellFormed()) throw invalid(`The variable ${name} is not well-formed Unicode.`);
}

function refuseReserved(name: string): void {
  if (name === COOKIE_NAME) throw invalid(`${COOKIE_NAME} is how Belay finds its processes; it cannot be set.`);
  if (!AFFECTS_HOLDERS.test(name)) return;
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

/** The cookies that the server itself was started with; the outermost ones if the nesting is too deep. */
const outerCookies = (value: string | undefined): readonly string[] =>
  (value ?? "")
    .split(" ")
    .filter(isCookie)
    .slice(0, COOKIES_MAX - 1);

const brief = (text: string): string => JSON.stringify(text.slice(0, 40)).slice(1, -1);

const invalid = (message: string, options?: { readonly hint: string }): ControlError =>
  new ControlError("invalid", message, options);
