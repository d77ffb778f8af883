// What can be seen of a process from outside, in /proc: its memory, its descriptors, and everybody below it.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

export interface Outside {
  readonly rssBytes: number;
  readonly descriptors: number;
  /** What they lead to, and how many to each: pipes and sockets without their numbers, files by name. */
  readonly open: Readonly<Record<string, number>>;
  readonly threads: number;
  /** Everybody below it, those that have ended excepted. */
  readonly descendants: readonly Below[];
  /** Those below it that have ended and that nobody has taken note of. */
  readonly zombies: number;
}

export interface Below {
  readonly pid: number;
  readonly command: string;
}

export interface Row {
  readonly pid: number;
  readonly parent: number;
  readonly state: string;
}

const KIB = 1_024;

export function lookAt(pid: number): Outside {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const field = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1]);
  const below = descendantsOf(pid, table());
  const descriptors = openIn(pid);
  return {
    rssBytes: field("VmRSS") * KIB,
    descriptors: descriptors.length,
    open: countOf(descriptors),
    threads: field("Threads"),
    descendants: below.filter(isAlive).map((row) => ({ pid: row.pid, command: commandOf(row.pid) })),
    zombies: below.filter((row) => !isAlive(row)).length,
  };
}

function openIn(pid: number): readonly string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return nameOf(readlinkSync(`/proc/${pid}/fd/${fd}`));
    } catch {
      // Closed since it was listed.
      return [];
    }
  });
}

/** The same for what takes the place of another: a pipe, a file that was begun anew under the next number. */
export const nameOf = (target: string): string =>
  target
    .replace(/:\[\d+\]$/, "")
    .replace(/ \(deleted\)$/, "")
    .replace(/^.*\//, "")
    .replace(/\.\d+(?=\.)/, ".N");

export function countOf(names: readonly string[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

const isAlive = ({ state }: Row): boolean => state !== "Z" && state !== "X";

/** Everybody on this machine. */
function table(): readonly Row[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => rowOf(Number(name)) ?? []);
}

function rowOf(pid: number): Row | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name is in brackets and may have brackets in it.
    const [state = "", parent = ""] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { pid, state, parent: Number(parent) };
  } catch {
    return undefined;
  }
}

export function descendantsOf(pid: number, rows: readonly Row[]): readonly Row[] {
  const children = rows.filter(({ parent }) => parent === pid);
  return children.flatMap((child) => [child, ...descendantsOf(child.pid, rows)]);
}

/** As it was started; empty if it is gone. */
export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
  } catch {
    return "";
  }
}
