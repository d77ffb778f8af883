// What can be seen of processes on a platform, and how they are signalled by it. Types only.
//
// Linux tells of one process at once, in /proc. Elsewhere `ps` tells of everybody, and takes its time: there the
// questions are answered by the last look, and who needs a newer one asks for it first.
import type { Leader } from "../containment/containment.ts";
import type { Identity, Seen } from "./proc.ts";
import type { Stat } from "./proc-file.ts";
import type { SignalPort } from "./signal.ts";
import type { WatchdogKind } from "./watchdog.ts";

export interface ProcessTable {
  readonly kind: "proc" | "ps";
  /** The watchdog that sees as we do. Undefined: the one of /proc. */
  readonly watchdogKind?: WatchdogKind;
  /**
   * Where answers have an age: looks again. Afterwards they are no older than the call. Rejects if that cannot be done.
   * Undefined: every answer is of the moment in which it is asked for.
   */
  readonly look?: () => Promise<void>;
  /** The same, and holds up everything else meanwhile: for the start of a server, never for a kill. Throws. */
  readonly lookNow?: () => void;
  /** Names the start of this machine. Undefined: it cannot be told. */
  bootId(): string | undefined;
  /** Names the table of pids that we see, and the way we see it. */
  namespace(): string | undefined;
  /** Undefined: nobody who is alive, or nobody can tell. */
  identityOf(pid: number): Identity | undefined;
  /** One that cannot be looked at counts as alive. */
  isStill(identity: Identity): boolean;
  statOf(pid: number): Stat | "gone" | "unknown";
  childrenOf(pid: number): readonly number[];
  pids(): readonly number[];
  /** All living processes, by a look that begins now. `meet` is called at once for each that has a mark. */
  listProcesses(meet?: (one: Seen) => void): Promise<readonly Seen[]>;
  /** How signals go out: to the group of this leader, or to anybody else who is proven to be the one that is meant. */
  means(leader?: Leader): SignalPort;
  /** A name for what a process has open. Undefined: it has not, or that cannot be seen from here. */
  openFile(pid: number, fd: number): string | undefined;
  hasOpen(pid: number, files: readonly string[]): boolean;
}
