// Reading the files of /proc, with as few system calls as it takes: a scan reads hundreds, and the kill path waits.
import { closeSync, openSync, readdirSync, readSync } from "node:fs";

/** A process as it stands in the table. */
export interface Stat {
  readonly pid: number;
  /** One letter: R running, S and D sleeping, T stopped, Z dead and not yet reaped, X being removed. */
  readonly state: string;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** Clock ticks from the start of the machine to its own. */
  readonly startTime: number;
  readonly threads: number;
  /** A part of the kernel that looks like a process. */
  readonly kernel: boolean;
}

/** `hidden`: not for us to see. `failed`: our own trouble, which says nothing about the process. */
export type Unread = "gone" | "hidden" | "failed";

/** More than any file of /proc has but an environment. */
const PIECE_BYTES = 16 * 1024;

/** Used by one read at a time: reading is synchronous, and what is handed out is a copy. */
const piece = Buffer.allocUnsafeSlow(PIECE_BYTES);

/** All of a file. How long it can be is the kernel's decision: an environment has six megabytes at most. */
export function readProc(path: string): Buffer | Unread {
  let file: number | undefined;
  try {
    file = openSync(path, "r");
    const pieces: Buffer[] = [];
    let bytes = PIECE_BYTES;
    // These files are made while they are read: a short piece is the last one.
    while (bytes === PIECE_BYTES) {
      bytes = readSync(file, piece, 0, PIECE_BYTES, null);
      pieces.push(Buffer.from(piece.subarray(0, bytes)));
    }
    return pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    // ESRCH: it ended between the opening of the file and the reading of it.
    if (code === "ENOENT" || code === "ESRCH" || code === "ENOTDIR") return "gone";
    return code === "EACCES" || code === "EPERM" ? "hidden" : "failed";
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/** The names in a directory; none if it cannot be read. */
export function listProc(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

/**
 * `12 (name) S 1 12 12 0 -1 … 4711 …`. The name is whatever the program calls itself, with spaces and parentheses; the
 * last parenthesis closes it, because nothing after it can hold one.
 */
export function parseStat(pid: number, text: string): Stat | undefined {
  const [state, ...rest] = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [parent, group, session, , , flags] = rest.map(Number);
  const [threads, , startTime] = rest.slice(16).map(Number);
  if (parent === undefined || group === undefined || session === undefined || flags === undefined) return undefined;
  if (state?.length !== 1 || threads === undefined || startTime === undefined) return undefined;
  if (![parent, group, session, flags, threads, startTime].every(Number.isSafeInteger)) return undefined;
  return { pid, state, parent, group, session, startTime, threads, kernel: (flags & KERNEL) !== 0 };
}

/** PF_KTHREAD */
const KERNEL = 0x0020_0000;
