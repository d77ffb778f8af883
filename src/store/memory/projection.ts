// The rows that follow from one append, worked out aside so that they are kept all or not at all.
//
// Invariants
// 1. Only `keep` changes the book, and only once nothing can be refused any more.
// 2. What a database guards with constraints is guarded here: one live run per session, one outcome per run and per
//    process, one run per key, no event of a session that does not exist. A breach is `internal`: the decision that
//    led to it was wrong.
import { ControlError } from "../../core/errors.ts";
import type { CallId, ProcessId, RunId, Seq, SessionId } from "../../core/model/ids.ts";
import type { ProcessRow, RowChange, RunRow } from "../../core/model/rows.ts";
import { encodeOutcome } from "../../wire/event.ts";

/** A run, process or call as kept: the outcome as text, so that nobody can change it from outside. */
export type KeptRun = Omit<RunRow, "outcome"> & { readonly outcome: string | undefined };
export type KeptProcess = Omit<ProcessRow, "outcome"> & { readonly outcome: string | undefined };
export interface KeptCall {
  readonly id: CallId;
  readonly session: SessionId;
  readonly settledAt: Seq;
  readonly outcome: string;
}

/** The rows of all sessions. */
export class Book {
  readonly sessions = new Map<SessionId, SessionPart>();
  readonly runs = new Map<RunId, KeptRun>();
  readonly calls = new Map<CallId, KeptCall>();
  readonly processes = new Map<ProcessId, KeptProcess>();
}

/** What is kept of one session beside its log. */
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

/** One append's rows, in the making. */
export class Draft {
  readonly #book: Book;
  readonly #id: SessionId;
  readonly #runs = new Map<RunId, KeptRun>();
  readonly #calls: KeptCall[] = [];
  /** These two are made when the first is heard of: most appends have none, and should not pay for it. */
  #keys: Set<string> | undefined;
  #processes: Map<ProcessId, KeptProcess> | undefined;
  #part: SessionPart | undefined;
  #live: RunId | undefined;
  #closed = false;

  constructor(book: Book, id: SessionId) {
    this.#book = book;
    this.#id = id;
    this.#part = book.sessions.get(id);
    this.#live = this.#part?.live;
  }

  /** Throws `internal` if the change would break a promise of the store. */
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

  /** Makes the draft the truth. */
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

  #keepRun(part: SessionPart, run: KeptRun): void {
    if (!this.#book.runs.has(run.id)) {
      part.runs.push(run.id);
      part.open.add(run.id);
      if (run.key !== undefined) part.keys.set(run.key, run.id);
    }
    this.#book.runs.set(run.id, run);
    if (run.phase === "settled") part.open.delete(run.id);
  }

  #keepProcess(part: SessionPart, one: KeptProcess): void {
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

  #processOf(id: ProcessId): KeptProcess | undefined {
    return this.#processes?.get(id) ?? this.#book.processes.get(id);
  }

  #putProcess(one: KeptProcess): void {
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

  #change(id: RunId, to: Partial<KeptRun>): void {
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
