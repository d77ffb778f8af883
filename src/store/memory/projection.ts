// The rows that follow from one append, computed in a draft so that all or none of them are stored.
//
// Invariants
// 1. Only `keep` changes the book, and only once the append can no longer be rejected.
// 2. Checks what a database ensures with constraints: one live run per session, one outcome per run and per process,
//    one run per key, no event of a session that does not exist. A violation is `internal`: the decision that led to
//    it was wrong.
import { ControlError } from "../../core/errors.ts";
import type { CallId, ProcessId, RunId, Seq, SessionId } from "../../core/model/ids.ts";
import type { ProcessRow, RowChange, RunRow } from "../../core/model/rows.ts";
import { encodeOutcome } from "../../wire/event.ts";

/** A run, process or call as stored: the outcome is text, so that no caller can modify it. */
export type StoredRun = Omit<RunRow, "outcome"> & { readonly outcome: string | undefined };
export type StoredProcess = Omit<ProcessRow, "outcome"> & { readonly outcome: string | undefined };
export interface StoredCall {
  readonly id: CallId;
  readonly session: SessionId;
  readonly settledAt: Seq;
  readonly outcome: string;
}

/** The rows of all sessions. */
export class Book {
  readonly sessions = new Map<SessionId, SessionPart>();
  readonly runs = new Map<RunId, StoredRun>();
  readonly calls = new Map<CallId, StoredCall>();
  readonly processes = new Map<ProcessId, StoredProcess>();
}

/** The rows of one session. */
export interface SessionPart {
  readonly createdAt: number;
  readonly title: string | undefined;
  readonly cwd: string | undefined;
  phase: "open" | "closed";
  live: RunId | undefined;
  /** Oldest first. */
  readonly runs: RunId[];
  readonly open: Set<RunId>;
  readonly keys: Map<string, RunId>;
  /** Oldest first. */
  readonly processes: ProcessId[];
  readonly openProcesses: Set<ProcessId>;
}

/** The rows of one append, not yet stored. */
export class Draft {
  readonly #book: Book;
  readonly #id: SessionId;
  readonly #runs = new Map<RunId, StoredRun>();
  readonly #calls: StoredCall[] = [];
  /** Both are created on demand: most appends need neither. */
  #keys: Set<string> | undefined;
  #processes: Map<ProcessId, StoredProcess> | undefined;
  #part: SessionPart | undefined;
  #live: RunId | undefined;
  #closed = false;

  constructor(book: Book, id: SessionId) {
    this.#book = book;
    this.#id = id;
    this.#part = book.sessions.get(id);
    this.#live = this.#part?.live;
  }

  /** Throws `internal` if the change would violate an invariant of the store. */
  apply(change: RowChange, at: number): void {
    switch (change.type) {
      case "create-session":
        this.#refuseIf(this.#part !== undefined, "exists already");
        this.#part = emptyPart(change, at);
        return;
      case "close-session":
        this.#closed = true;
        return;
      case "insert-run":
        this.#insertRun(change);
        return;
      case "start-run":
        this.#refuseIf(
          this.#live !== undefined,
          `has a live run, ${this.#live ?? ""}, and cannot have ${change.id} too`,
        );
        this.#change(change.id, { phase: "live" });
        this.#live = change.id;
        return;
      case "settle-run":
        this.#change(change.id, {
          phase: "settled",
          settledAt: change.settledAt,
          outcome: encodeOutcome(change.outcome),
        });
        if (this.#live === change.id) this.#live = undefined;
        return;
      case "insert-call": {
        const { id, settledAt } = change;
        const known = this.#book.calls.has(id) || this.#calls.some((call) => call.id === id);
        this.#refuseIf(known, `has recorded an outcome of ${id} already`);
        this.#calls.push({ id, session: this.#id, settledAt, outcome: encodeOutcome(change.outcome) });
        return;
      }
      case "insert-process":
        this.#insertProcess(change);
        return;
      case "settle-process":
        this.#settleProcess(change);
        return;
    }
  }

  /** Stores the draft. */
  keep(): void {
    const part = this.#part;
    if (part === undefined) throw this.#breach("does not exist");
    this.#book.sessions.set(this.#id, part);
    part.live = this.#live;
    if (this.#closed) part.phase = "closed";
    for (const run of this.#runs.values()) this.#keepRun(part, run);
    for (const call of this.#calls) this.#book.calls.set(call.id, call);
    if (this.#processes !== undefined) for (const one of this.#processes.values()) this.#keepProcess(part, one);
  }

  #keepRun(part: SessionPart, run: StoredRun): void {
    if (!this.#book.runs.has(run.id)) {
      part.runs.push(run.id);
      part.open.add(run.id);
      if (run.key !== undefined) part.keys.set(run.key, run.id);
    }
    this.#book.runs.set(run.id, run);
    if (run.phase === "settled") part.open.delete(run.id);
  }

  #keepProcess(part: SessionPart, one: StoredProcess): void {
    if (!this.#book.processes.has(one.id)) {
      part.processes.push(one.id);
      part.openProcesses.add(one.id);
    }
    this.#book.processes.set(one.id, one);
    if (one.outcome !== undefined) part.openProcesses.delete(one.id);
  }

  #insertProcess({ id, requestedAt }: Extract<RowChange, { type: "insert-process" }>): void {
    this.#refuseIf(this.#processOf(id) !== undefined, `cannot request ${id} a second time`);
    this.#putProcess({ id, session: this.#id, requestedAt, settledAt: undefined, outcome: undefined });
  }

  #settleProcess({ id, settledAt, outcome }: Extract<RowChange, { type: "settle-process" }>): void {
    const one = this.#processOf(id);
    if (one?.session !== this.#id) throw this.#breach(`has no process ${id}`);
    this.#refuseIf(one.outcome !== undefined, `has recorded an outcome of ${id} already`);
    this.#putProcess({ ...one, settledAt, outcome: encodeOutcome(outcome) });
  }

  #processOf(id: ProcessId): StoredProcess | undefined {
    return this.#processes?.get(id) ?? this.#book.processes.get(id);
  }

  #putProcess(one: StoredProcess): void {
    this.#processes ??= new Map();
    this.#processes.set(one.id, one);
  }

  #insertRun({ id, acceptedAt, key, content }: Extract<RowChange, { type: "insert-run" }>): void {
    this.#refuseIf(this.#runs.has(id) || this.#book.runs.has(id), `cannot accept ${id} a second time`);
    this.#refuseIf(key !== undefined && this.#hasKey(key), `has a run under the key ${key ?? ""} already`);
    const session = this.#id;
    const fresh = { phase: "waiting", settledAt: undefined, outcome: undefined } as const;
    this.#runs.set(id, { id, session, acceptedAt, key, content, ...fresh });
    if (key === undefined) return;
    this.#keys ??= new Set();
    this.#keys.add(key);
  }

  #hasKey(key: string): boolean {
    return this.#part?.keys.has(key) === true || this.#keys?.has(key) === true;
  }

  #change(id: RunId, to: Partial<StoredRun>): void {
    const run = this.#runs.get(id) ?? this.#book.runs.get(id);
    if (run?.session !== this.#id) throw this.#breach(`has no run ${id}`);
    this.#refuseIf(run.phase === "settled", `has recorded an outcome of ${id} already`);
    this.#runs.set(id, { ...run, ...to });
  }

  #refuseIf(wrong: boolean, why: string): void {
    if (wrong) throw this.#breach(why);
  }

  #breach(why: string): ControlError {
    return new ControlError("internal", `Session ${this.#id} ${why}. Nothing was recorded.`);
  }
}

type Created = Extract<RowChange, { type: "create-session" }>;

const emptyPart = ({ title, cwd }: Created, createdAt: number): SessionPart => ({
  createdAt,
  title,
  cwd,
  phase: "open",
  live: undefined,
  runs: [],
  open: new Set(),
  keys: new Map(),
  processes: [],
  openProcesses: new Set(),
});
