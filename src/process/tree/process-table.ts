// The port through which processes are listed and signalled on a platform. Types only.
//
// Linux answers for one process at once, in /proc. Elsewhere `ps` lists all processes, which takes time: there, queries
// are answered from the last scan, and a caller that needs a newer one calls `refresh` first.
import type { Leader } from "../containment/containment.ts";
import type { Identity, Seen } from "./proc.ts";
import type { Stat } from "./proc-file.ts";
import type { SignalPort } from "./signal.ts";
import type { WatchdogKind } from "./watchdog.ts";

export interface ProcessTable {
  readonly kind: "proc" | "ps";
  /** The watchdog that uses the same source. Undefined: the one over /proc. */
  readonly watchdogKind?: WatchdogKind;
  /**
   * Scans again where answers come from a cached scan. Afterwards they are no older than the call. Rejects if the scan
   * fails. Undefined: every answer is current.
   */
  readonly refresh?: () => Promise<void>;
  /** The same, synchronously: for the start of a server, never for a kill. Throws if the scan fails. */
  readonly refreshNow?: () => void;
  /** Identifies this boot of the machine. Undefined: it cannot be read. */
  bootId(): string | undefined;
  /** Identifies the set of pids that we see, and the source that we read them from. */
  namespace(): string | undefined;
  /** Undefined: no living process has this pid, or it cannot be read. */
  identityOf(pid: number): Identity | undefined;
  /** A process that cannot be read counts as alive. */
  isStill(identity: Identity): boolean;
  statOf(pid: number): Stat | "gone" | "unknown";
  childrenOf(pid: number): readonly number[];
  pids(): readonly number[];
  /** All living processes, by a scan that begins now. `meet` is called at once for each that carries a cookie. */
  listProcesses(meet?: (one: Seen) => void): Promise<readonly Seen[]>;
  /** How signals are sent: to the group of this leader, or to any other process whose identity is proven. */
  means(leader?: Leader): SignalPort;
  /** A name for an open file of a process. Undefined: it is not open, or cannot be read from here. */
  openFile(pid: number, fd: number): string | undefined;
  hasOpen(pid: number, files: readonly string[]): boolean;
}
