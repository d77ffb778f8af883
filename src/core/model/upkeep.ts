// Upkeep: the part of a store that removes data permanently. Types only.
import type { ControlCode } from "../errors.ts";
import type { Seq, SessionId } from "./ids.ts";

export interface StoreTrimmed {
  /** The first position that is kept. */
  readonly kept: Seq;
  /** How many events this call has removed. */
  readonly removed: number;
  /** What prevented removing everything before `before`. */
  readonly limit?: "run" | "process" | "snapshot";
  /** The space of removed events is not all freed yet. */
  readonly more: boolean;
}

/** Each call does a bounded amount of work, so that none delays an append for long. */
export interface Upkeep {
  /**
   * Deletes a session and everything that belongs to it. `more`: call again. `busy`: one of its runs or processes has
   * no outcome, and nothing was deleted. A partly deleted session has no events, and keeps its head.
   */
  remove(session: SessionId): Promise<"more" | "done" | "absent" | "busy">;
  /** Sessions in order of creation, starting at a cursor. A short page is the last one. */
  survey(page: { readonly after: number; readonly limit: number }): Promise<readonly Surveyed[]>;
  /** The first kept position from which no event is older than `at` and all together take at most `bytes`. */
  within(session: SessionId, limits: { readonly at?: number; readonly bytes?: number }): Promise<Seq>;
  usage(): Promise<StoreUsage>;
  /** Returns some unused space to the file system. The result is the number of unused bytes left. */
  reclaim(): Promise<number>;
}

export interface Surveyed {
  readonly id: SessionId;
  /** Where the next page begins. */
  readonly cursor: number;
  readonly kept: Seq;
  readonly head: Seq;
  /** When the first and the last kept event were recorded. If none is kept, when the session was created. */
  readonly since: number;
  readonly at: number;
}

export interface StoreUsage {
  /** The size on disk, including the write-ahead log; in memory, the size of the stored texts. */
  readonly bytes: number;
  /** The unused part of it. */
  readonly freeBytes: number;
}

export interface Trimmed {
  /** The first position that is kept. */
  readonly kept: Seq;
  /** How many events were removed. */
  readonly removed: number;
  /**
   * Why older events than requested are kept. `summary`: the model's context begins there. `run`, `process`: one has no
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
  /** Events that are kept. */
  readonly events: number;
}

/** What retention has removed since the start. */
export interface RetentionStatus {
  readonly removedEvents: number;
  readonly deletedSessions: number;
  /** Why the last pass removed nothing more. Undefined: it could. */
  readonly trouble: ControlCode | undefined;
}

/** What the program uses of its machine. */
export interface Resources {
  /** Resident set size. */
  readonly memoryBytes: number;
  /** JavaScript heap in use. */
  readonly heapBytes: number;
  /** The longest delay of the event loop in the last one to two minutes. Undefined: not measured. */
  readonly loopDelayMs: number | undefined;
  /** Open files and sockets. Undefined: the system does not report it. */
  readonly descriptors: number | undefined;
}
