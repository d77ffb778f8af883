// The table of processes as `ps` prints it: how it is asked for, and how it is read.
//
// What a look costs in certainty, against /proc: the start of a process is told in whole seconds, so one that got the
// pid of another within a second cannot be told from it. Arguments and environment are one text, so whoever names a
// cookie in its arguments is taken for one who carries it. Sessions are not told at all: macOS prints none.
import { COOKIE_NAME, isCookie } from "../launch/environment.ts";
import { COOKIES_MAX } from "../limits.ts";
import type { Stat } from "./proc-file.ts";

/** `ps` has two tongues for "everybody, at full length, with the environment". The columns have the same names. */
export type Dialect = "macos" | "linux";

/** As they are read. Each in an option of its own: what follows an `=` is a heading, commas included. */
const COLUMNS = ["pid", "ppid", "pgid", "stat", "lstart"];

/** Dates as they are written nowhere in particular: a table that is read in a later life must say the same. */
export const PS_ENVIRONMENT = { LC_ALL: "C", TZ: "UTC0", PATH: "/usr/bin:/bin:/usr/sbin:/sbin" };

export function psArguments(dialect: Dialect, options: { readonly cookies: boolean }): readonly string[] {
  const [plain, full] = dialect === "macos" ? ["-axww", "-axEww"] : ["axww", "axeww"];
  const columns = options.cookies ? [...COLUMNS, "command"] : COLUMNS;
  return [options.cookies ? full : plain, ...columns.flatMap((name) => ["-o", `${name}=`])];
}

export interface Row extends Stat {
  readonly cookies: readonly string[];
}

/** Throws if a line cannot be read: a table without somebody would look like a death. */
export function parseTable(text: string): ReadonlyMap<number, Row> {
  const rows = new Map<number, Row>();
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const row = parseRow(line);
    if (row === undefined) throw new Error(`ps said something that is no line of its table: ${line.slice(0, 80)}`);
    // No pid is there twice. Where it is, somebody has put a line end into its arguments to speak for somebody else.
    rows.set(row.pid, rows.has(row.pid) ? { ...row, cookies: [] } : row);
  }
  if (rows.size === 0) throw new Error("ps said nothing.");
  return rows;
}

/** Of one that is dead and not reaped, macOS does not know any more when it started. */
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

/** `Sun Nov 15 09:44:09 2026` is 20261115094409: nobody reckons with it, so it need be no point on a line. */
function toStartTime(text: string): number {
  const [, month = "", day = "", time = "", year = ""] = text.split(/ +/);
  const number = String(MONTHS.indexOf(month) + 1).padStart(2, "0");
  return Number(`${year}${number}${day.padStart(2, "0")}${time.replaceAll(":", "")}`);
}

/** Back to what `ps` prints, the weekday left out, one underscore for each gap: for those who compare texts. */
export function startText(startTime: number): string {
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(`${startTime}`) ?? [];
  return `${MONTHS[Number(month) - 1]}_${Number(day)}_${hour}:${minute}:${second}_${year}`;
}

/** The cookies in a text of words. A value may hold several, with spaces between: it goes on as long as they do. */
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

/** `sysctl -n kern.bootsessionuuid` of macOS, or its `kern.boottime`: `{ sec = 1700000000, usec = 5 } Tue Nov …`. */
export function parseBoot(text: string): string | undefined {
  const [uuid] = /^[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}$/i.exec(text.trim()) ?? [];
  const [, seconds] = /^\{ sec = (\d+), usec = \d+ \}/.exec(text.trim()) ?? [];
  return uuid ?? seconds;
}
