// One live process of this worker: its child, its waiters, and the way its end takes to the log.
//
// Invariants
// 1. Nothing is started once its stop is decided.
// 2. Its end is recorded once, when the whole tree has ended or has escaped; only then are waiters released.
// 3. A stop reaches the child in the tick in which it is decided, whatever the store does.
// 4. Its end is reported by the spawner and by nothing else. Past its deadline it is late, and no longer waited for.

import { OUTPUT_TAIL_CHARS } from "../../core/limits.ts";
import type { CancelReason } from "../../core/model/cancel.ts";
import type { OutputNote } from "../../core/model/event.ts";
import type { CallId, ProcessId, SessionId, Work } from "../../core/model/ids.ts";
import type { ProcessEnd } from "../../core/model/process.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Child, ChildEnd, Output, ProcessResult } from "../../ports/spawner.ts";
import type { Deadline } from "../work/deadline.ts";

/**
 * How a process is stopped. With its call or session: within their deadline. `alone`: with its own grace period. `at
 * once`: it is killed.
 */
export type StopWithin = Deadline | "alone" | "at once";

/** Records the end of a process, and publishes its output until then. */
export interface ProcessListener {
  readonly clock: Clock;
  settle(end: ProcessEnd, waiters: readonly Work[]): Promise<ProcessResult>;
  note(live: LiveProcess, output: Output): void;
  /** It should have ended by now, and has not. */
  late(live: LiveProcess): void;
}

export class LiveProcess {
  readonly id: ProcessId;
  readonly owner: CallId | SessionId;
  /** Resolves when its end is recorded; rejects if its session is not driven here any more. */
  readonly result: Promise<ProcessResult>;
  /** Resolves when the child exists; with undefined if it never will. */
  readonly existing: Promise<Child | undefined>;
  child: Child | undefined = undefined;
  phase: "starting" | "live" | "over" = "starting";
  /** It was stopped with its owner, and its end was not reported before the deadline. */
  isLate = false;
  /** The move to the background is recorded. */
  detached = false;
  /** Its end as it is recorded. */
  recorded: ProcessResult | undefined = undefined;
  readonly #listener: ProcessListener;
  readonly #starting = new AbortController();
  readonly #waiters = new Set<{ readonly work: Work }>();
  /** The part of the grace period that passes before the first signal, if it is stopped with its call. */
  readonly #share: number;
  /** When a stop sends the first signal, and when it kills. */
  #signalAt = Number.POSITIVE_INFINITY;
  #killAt = Number.POSITIVE_INFINITY;
  #deadBy = Number.POSITIVE_INFINITY;
  #cancelSignal: () => void = ignore;
  #cancelLate: () => void = ignore;
  readonly #late = Promise.withResolvers<"late">();
  #unsubscribeNotes: () => void = ignore;
  #cancelLimit: () => void = ignore;
  #resolve: (result: ProcessResult | Promise<ProcessResult>) => void = ignore;
  #exists: (child: Child | undefined) => void = ignore;

  constructor(id: ProcessId, owner: CallId | SessionId, listener: ProcessListener, share = 0) {
    this.id = id;
    this.owner = owner;
    this.#listener = listener;
    this.#share = share;
    this.result = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.existing = new Promise((resolve) => {
      this.#exists = resolve;
    });
    // Not an unhandled rejection if nothing waits for it.
    this.result.catch(ignore);
  }

  /** Resolves when its end is recorded, or, if it was stopped with its owner, at its deadline. */
  get over(): Promise<ProcessResult | "late"> {
    return Promise.race([this.result, this.#late.promise]);
  }

  /** Aborts if it is stopped before it exists. */
  get starting(): AbortSignal {
    return this.#starting.signal;
  }

  began(child: Child): void {
    this.child = child;
    this.phase = "live";
    this.#exists(child);
    if (this.#signalAt <= this.#listener.clock.elapsed()) this.#signal();
    this.#unsubscribeNotes = startNotes(this.#listener.clock, () => this.#listener.note(this, child.output));
    // A spawner that cannot report how its process ended has lost it.
    child.ended.then(
      (end) => this.#ended(endOf(this.id, end, noteOf(child.output))),
      () => this.#ended({ processId: this.id }),
    );
  }

  /** It could not be started. `stopped`: because a stop came first. */
  failed(error: { readonly code: string; readonly message: string }): void {
    this.#ended(
      this.#signalAt === Number.POSITIVE_INFINITY
        ? { processId: this.id, failed: error }
        : { processId: this.id, stopped: true },
    );
  }

  /** Its request was not recorded: it never starts, and nothing is recorded. */
  discard(error: unknown): void {
    this.phase = "over";
    this.#cancelLate();
    this.#exists(undefined);
    this.#resolve(Promise.reject(error));
  }

  /**
   * Stops it in this tick. A later stop can only shorten the time. `with-call`: together with its call, whose grace may
   * delay the first signal.
   */
  stop(within: StopWithin, how?: "with-call"): void {
    if (this.phase === "over") return;
    const now = this.#listener.clock.elapsed();
    // @fault spawned-after-the-stop
    if (this.child === undefined) this.#starting.abort();
    if (within === "at once") this.#killBy(now, now);
    else if (within === "alone") this.#killBy(Number.POSITIVE_INFINITY, now);
    else {
      this.#expectDeath(within.deadBy);
      const share = how === "with-call" ? this.#share : 0; // @fault background-asked-late
      this.#killBy(within.stopBy, now + share * (within.stopBy - now));
    }
  }

  #killBy(killAt: number, signalAt: number): void {
    if (killAt >= this.#killAt && signalAt >= this.#signalAt) return;
    this.#killAt = Math.min(killAt, this.#killAt);
    this.#signalAt = Math.min(signalAt, this.#signalAt);
    this.#cancelSignal();
    const waitMs = this.#signalAt - this.#listener.clock.elapsed();
    if (waitMs <= 0) this.#signal();
    else this.#cancelSignal = this.#listener.clock.after(waitMs, () => this.#signal());
  }

  /** The child has its own grace period; the shorter one applies. */
  #signal(): void {
    this.child?.stop(Math.max(0, this.#killAt - this.#listener.clock.elapsed()));
  }

  #expectDeath(deadBy: number): void {
    if (deadBy >= this.#deadBy) return;
    this.#deadBy = deadBy;
    this.#cancelLate();
    this.#cancelLate = this.#listener.clock.after(deadBy - this.#listener.clock.elapsed(), () => {
      this.isLate = true;
      this.#late.resolve("late");
      this.#listener.late(this);
    });
  }

  /** Stops it after a time limit, through `reached`, which records the reason. */
  limit(limitMs: number, reached: (reason: CancelReason) => void): void {
    if (this.phase === "over") return;
    this.#cancelLimit = this.#listener.clock.after(limitMs, () => reached({ kind: "timeout", limitMs }));
  }

  /** A call or turn waits for it: if it ends meanwhile, the waiter gets the result, and no other turn does. */
  awaitedBy(work: Work): () => void {
    // One object for each wait: the same work may wait twice.
    const waiter = { work };
    this.#waiters.add(waiter);
    return () => void this.#waiters.delete(waiter);
  }

  #ended(end: ProcessEnd): void {
    this.phase = "over";
    this.#exists(undefined);
    this.#cancelSignal();
    this.#cancelLate();
    this.#unsubscribeNotes();
    this.#cancelLimit(); // @fault process-limit-left-behind
    const waiters = new Set([...this.#waiters].map(({ work }) => work));
    this.#resolve(this.#listener.settle(end, [...waiters]));
  }
}

/** Intervals before the first note, the second, and so on; the last one repeats. */
export const PACE_MS: readonly number[] = [2_000, 4_000, 8_000, 16_000, 30_000];

/** Calls back at these intervals. Returns a function that cancels it. Does not keep a program alive. */
export function startNotes(clock: Clock, note: () => void): () => void {
  let dispose = (): void => {};
  const next = (index: number): void => {
    const paused = PACE_MS[Math.min(index, PACE_MS.length - 1)] ?? 0;
    dispose = clock.after(
      paused,
      () => {
        note();
        next(index + 1);
      },
      "idle",
    );
  };
  next(0);
  return () => dispose();
}

function endOf(processId: ProcessId, end: ChildEnd, output: OutputNote | undefined): ProcessEnd {
  const { code, signal, durationMs, escaped, stopped } = end;
  return {
    processId,
    ...(stopped ? { stopped } : {}),
    exit: { ...(code === undefined ? {} : { code }), ...(signal === undefined ? {} : { signal }) },
    durationMs: Math.round(durationMs),
    ...(output === undefined ? {} : { output }),
    escaped,
  };
}

/** The record of its output. Undefined: it cannot be read, which does not change how the process ended. */
export function noteOf(output: Output): OutputNote | undefined {
  try {
    return readNote(output);
  } catch {
    return undefined;
  }
}

/** The size, the end, and the directory of the output. */
function readNote(output: Output): OutputNote {
  const { bytes } = output.counts;
  const { head, tail } = output.excerpt({ bytesMax: 2 * OUTPUT_TAIL_CHARS, plain: true });
  // If it does not fit, only the end: head and tail joined would look complete.
  const text = tail === "" ? head : tail;
  return {
    bytes: bytes.all,
    stdoutBytes: bytes.stdout,
    stderrBytes: bytes.stderr,
    tail: text.slice(-OUTPUT_TAIL_CHARS).toWellFormed(),
    dir: output.dir,
  };
}

const ignore = (): void => {};
