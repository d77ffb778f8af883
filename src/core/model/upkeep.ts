// What keeps a store small: the part of it that removes things permanently. Types only.
import type { ControlCode } from "../errors.ts";
import type { Seq, SessionId } from "./ids.ts";

export interface StoreTrimmed {
  /** The first position that is kept. */
  readonly kept: Seq;
  /** How many events this call has removed. */
  readonly removed: number;
  /** What kept it from removing everything before `before`. */
  readonly limit?: "run" | "process" | "snapshot";
  /** There are removed events whose space was not given back yet. */
  readonly more: boolean;
}

/** Each call does a bounded amount of work, so that none delays an append for long. */
export interface Upkeep {
  /**
   * Deletes a session and everything that belongs to it. `more`: call again. `busy`: a run or process of it has no
   * outcome, and nothing was deleted. A session that was deleted in part has no events, and keeps its head.
   */
  remove(session: SessionId): Promise<"more" | "done" | "absent" | "busy">;
  /** Sessions in order of creation, from a cursor on. A short page is the last one. */
  survey(page: { readonly after: number; readonly limit: number }): Promise<readonly Surveyed[]>;
  /** The first kept position from which on nothing is older than `at` and all of it takes at most `bytes`. */
  within(session: SessionId, limits: { readonly at?: number; readonly bytes?: number }): Promise<Seq>;
  usage(): Promise<StoreUsage>;
  /** Gives some of the unused space back to the file system. Answers how much is left, in bytes. */
  reclaim(): Promise<number>;
}

export interface Surveyed {
  readonly id: SessionId;
  /** Where the next page begins. */
  readonly cursor: number;
  readonly kept: Seq;
  readonly head: Seq;
  /** When the first event that is kept was recorded, and the last. If none is kept, when it was created. */
  readonly since: number;
  readonly at: number;
}

export interface StoreUsage {
  /** What it takes up on disk, with its write-ahead log; in memory, the texts it holds. */
  readonly bytes: number;
  /** What of that is unused. */
  readonly freeBytes: number;
}

export interface Trimmed {
  /** The first position that is kept. */
  readonly kept: Seq;
  /** How many events were removed. */
  readonly removed: number;
  /**
   * Why there are older ones than asked for. `summary`: the model's context begins there. `run`, `process`: one has no
   * outcome, or would be cut in two.
   */
  readonly limit?: "summary" | "run" | "process";
}

export interface SessionDeleted {
  readonly kind: "deleted";
  readonly sessionId: SessionId;
  /** How many events its log had. */
  readonly events: number;
}

export interface StoreStatus extends StoreUsage {
  readonly sessions: number;
  /** Those that are kept. */
  readonly events: number;
}

/** What retention has removed since the start. */
export interface RetentionStatus {
  readonly removedEvents: number;
  readonly deletedSessions: number;
  /** Why its last look removed nothing more. Undefined: it could. */
  readonly trouble: ControlCode | undefined;
}

/** What the program uses of its machine. */
export interface Resources {
  /** Resident set size. */
  readonly memoryBytes: number;
  /** JavaScript heap in use. */
  readonly heapBytes: number;
  /** The worst delay of the event loop in the last minute or two. Undefined: it is not measured. */
  readonly loopDelayMs: number | undefined;
  /** Open files and sockets. Undefined: the system does not say. */
  readonly descriptors: number | undefined;
}
