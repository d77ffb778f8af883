// Reads files of /proc with as few system calls as possible: a scan reads hundreds, and the kill path waits for it.
import { closeSync, openSync, readdirSync, readSync } from "node:fs";

/** A process as the process table shows it. */
export interface Stat {
  readonly pid: number;
  /** One letter: R running, S and D sleeping, T stopped, Z dead and not yet reaped, X being removed. */
  readonly state: string;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** Clock ticks from the boot of the machine to its start. */
  readonly startTime: number;
  readonly threads: number;
  /** A kernel thread, which looks like a process. */
  readonly kernel: boolean;
}

/** `hidden`: we lack permission. `failed`: an error on our side, which says nothing about the process. */
export type Unread = "gone" | "hidden" | "failed";

/** Larger than any file of /proc except an environment. */
const PIECE_BYTES = 16 * 1024;

/** Shared by all reads: reading is synchronous, and the result is a copy. */
const piece = Buffer.allocUnsafeSlow(PIECE_BYTES);

/** Reads a whole file. The kernel limits its length: an environment has at most six megabytes. */
export function readProc(path: string): Buffer | Unread {
  let file: number | undefined;
  try {
    file = openSync(path, "r");
    const pieces: Buffer[] = [];
    let bytes = PIECE_BYTES;
    // These files are generated while they are read: a short piece is the last one.
    while (bytes === PIECE_BYTES) {
      bytes = readSync(file, piece, 0, PIECE_BYTES, null);
      pieces.push(Buffer.from(piece.subarray(0, bytes)));
    }
    return pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    // ESRCH: the process ended between opening and reading the file.
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
 * `12 (name) S 1 12 12 0 -1 … 4711 …`. A program chooses its name, including spaces and parentheses; the last closing
 * parenthesis ends it, because no later field contains one.
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
