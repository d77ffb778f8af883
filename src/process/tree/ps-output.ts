// The arguments of `ps`, and the parser of its output.
//
// Less certain than /proc in three ways: start times are whole seconds, so a process that gets a pid within the second
// its predecessor started cannot be told from it. Arguments and environment are one text, so a process that names a
// cookie in its arguments counts as carrying it. Session ids are missing, because macOS does not print them.
import { COOKIE_NAME, isCookie } from "../launch/environment.ts";
import { COOKIES_MAX } from "../limits.ts";
import type { Stat } from "./proc-file.ts";

/** The two syntaxes for "all processes, full width, with environment". The column names are the same. */
export type Dialect = "macos" | "linux";

/** In the order of parsing. Each in its own option: what follows an `=` is a heading, commas included. */
const COLUMNS = ["pid", "ppid", "pgid", "stat", "lstart"];

/** A fixed locale and time zone, so that a later server reads the same start times. */
export const PS_ENVIRONMENT = { LC_ALL: "C", TZ: "UTC0", PATH: "/usr/bin:/bin:/usr/sbin:/sbin" };

export function psArguments(dialect: Dialect, options: { readonly cookies: boolean }): readonly string[] {
  const [plain, full] = dialect === "macos" ? ["-axww", "-axEww"] : ["axww", "axeww"];
  const columns = options.cookies ? [...COLUMNS, "command"] : COLUMNS;
  return [options.cookies ? full : plain, ...columns.flatMap((name) => ["-o", `${name}=`])];
}

export interface Row extends Stat {
  readonly cookies: readonly string[];
}

/** Throws if a line cannot be parsed: a missing process would look like a death. */
export function parseTable(text: string): ReadonlyMap<number, Row> {
  const rows = new Map<number, Row>();
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const row = parseRow(line);
    if (row === undefined) throw new Error(`ps printed a line that cannot be parsed: ${line.slice(0, 80)}`);
    // A pid is listed once. A duplicate means that a process forged a line with a newline in its arguments.
    rows.set(row.pid, rows.has(row.pid) ? { ...row, cookies: [] } : row);
  }
  if (rows.size === 0) throw new Error("ps printed nothing.");
  return rows;
}

/** For a process that is dead and not reaped, macOS prints no start time. */
const LINE = /^ *(\d+) +(\d+) +(\d+) +(\S+) +(-|[A-Z][a-z]{2} +[A-Z][a-z]{2} +\d+ +[\d:]{8} +\d{4})(?: +(.*))?$/;

function parseRow(line: string): Row | undefined {
  const [whole, pid, parent, group, state = "", started = "", rest = ""] = LINE.exec(line) ?? [];
  if (whole === undefined) return undefined;
  return {
    pid: Number(pid),
    parent: Number(parent),
    group: Number(group),
    session: 0,
    state: state.slice(0, 1),
    startTime: started === "-" ? 0 : toStartTime(started),
    threads: 1,
    kernel: false,
    cookies: cookiesInText(rest),
  };
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** `Sun Nov 15 09:44:09 2026` becomes 20261115094409. The value is only compared, never used in arithmetic. */
function toStartTime(text: string): number {
  const [, month = "", day = "", time = "", year = ""] = text.split(/ +/);
  const number = String(MONTHS.indexOf(month) + 1).padStart(2, "0");
  return Number(`${year}${number}${day.padStart(2, "0")}${time.replaceAll(":", "")}`);
}

/** The reverse, for comparison with `ps` output in a shell: no weekday, one underscore for each gap. */
export function startText(startTime: number): string {
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(`${startTime}`) ?? [];
  return `${MONTHS[Number(month) - 1]}_${Number(day)}_${hour}:${minute}:${second}_${year}`;
}

/** The cookies in a text. A value may hold several, separated by spaces: it extends as far as they do. */
function cookiesInText(text: string): readonly string[] {
  const found: string[] = [];
  for (let at = text.indexOf(ENTRY); at >= 0; at = text.indexOf(ENTRY, at + ENTRY.length)) {
    if (at > 0 && text[at - 1] !== " ") continue;
    const words = text.slice(at + ENTRY.length).split(" ", COOKIES_MAX);
    const end = words.findIndex((word) => !isCookie(word));
    found.push(...(end < 0 ? words : words.slice(0, end)));
  }
  return found;
}

const ENTRY = `${COOKIE_NAME}=`;

/**
 * Parses `sysctl -n kern.bootsessionuuid` of macOS, or its `kern.boottime`: `{ sec = 1700000000, usec = 5 } Tue Nov …`.
 */
export function parseBoot(text: string): string | undefined {
  const [uuid] = /^[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}$/i.exec(text.trim()) ?? [];
  const [, seconds] = /^\{ sec = (\d+), usec = \d+ \}/.exec(text.trim()) ?? [];
  return uuid ?? seconds;
}
