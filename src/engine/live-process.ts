// One process that is going on in this worker: its child, who waits for it, and the way its end takes to the log.
//
// Invariants
// 1. Nothing is started once its stop is decided.
// 2. Its end is recorded once, when the whole tree is gone or has escaped; only then is anybody told.
// 3. A stop reaches the child in the tick in which it is decided, whatever the store does.
import type { CancelReason } from "../core/cancel.ts";
import type { OutputNote } from "../core/event.ts";
import type { CallId, ProcessId, SessionId } from "../core/ids.ts";
import { OUTPUT_TAIL_CHARS } from "../core/limits.ts";
import type { ProcessEnd } from "../core/process.ts";
import type { Clock } from "../ports.ts";
import type { Child, ChildEnd, Output, ProcessResult } from "../spawner.ts";
import { startNotes } from "./process-notes.ts";

/** How its end reaches the log, and what people see of it until then. */
export interface ProcessDesk {
  readonly clock: Clock;
  settle(end: ProcessEnd, waiter: CallId | undefined): Promise<ProcessResult>;
  note(live: LiveProcess, output: Output): void;
}

export class LiveProcess {
  readonly id: ProcessId;
  readonly owner: CallId | SessionId;
  /** Resolves when its end is recorded; rejects if its session is not ours any more. */
  readonly result: Promise<ProcessResult>;
  /** Resolves when it exists; with nothing if it never will. */
  readonly existing: Promise<Child | undefined>;
  child: Child | undefined = undefined;
  phase: "starting" | "live" | "over" = "starting";
  /** The log says that it went to the background. */
  detached = false;
  /** What the log says of its end. */
  recorded: ProcessResult | undefined = undefined;
  readonly #desk: ProcessDesk;
  readonly #starting = new AbortController();
  readonly #waiters = new Set<{ readonly call: CallId }>();
  #stops: "politely" | "at once" | undefined = undefined;
  #takeBackNotes: () => void = ignore;
  #takeBackLimit: () => void = ignore;
  #resolve: (result: ProcessResult | Promise<ProcessResult>) => void = ignore;
  #exists: (child: Child | undefined) => void = ignore;

  constructor(id: ProcessId, owner: CallId | SessionId, desk: ProcessDesk) {
    this.id = id;
    this.owner = owner;
    this.#desk = desk;
    this.result = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.existing = new Promise((resolve) => {
      this.#exists = resolve;
    });
    // Whoever wants to know asks; nobody has to.
    this.result.catch(ignore);
  }

  /** Aborts if it is stopped before it exists. */
  get starting(): AbortSignal {
    return this.#starting.signal;
  }

  began(child: Child): void {
    this.child = child;
    this.phase = "live";
    this.#exists(child);
    if (this.#stops !== undefined) stopChild(child, this.#stops);
    this.#takeBackNotes = startNotes(this.#desk.clock, () => this.#desk.note(this, child.output));
    void child.ended.then((end) => this.#over(endOf(this.id, end, noteOf(child.output))));
  }

  /** It never came into being. `stopped`: because somebody was faster. */
  failed(error: { readonly code: string; readonly message: string }): void {
    this.#over(
      this.#stops === undefined ? { processId: this.id, failed: error } : { processId: this.id, stopped: true },
    );
  }

  /** Its request was not recorded: it never comes into being, and nothing is recorded of it. */
  discard(error: unknown): void {
    this.phase = "over";
    this.#exists(undefined);
    this.#resolve(Promise.reject(error));
  }

  /** Asks it to end, in this very tick. A later request can only make it faster. */
  stop(how: "politely" | "at once" = "politely"): void {
    if (this.#stops !== "at once") this.#stops = how;
    // @fault spawned-after-the-stop
    if (this.child === undefined) this.#starting.abort();
    else stopChild(this.child, this.#stops);
  }

  /** Stops it after a while, by way of whoever records the reason. */
  limit(limitMs: number, reached: (reason: CancelReason) => void): void {
    if (this.phase === "over") return;
    this.#takeBackLimit = this.#desk.clock.after(limitMs, () => reached({ kind: "timeout", limitMs }));
  }

  /** A call waits for it: if it ends meanwhile, this call tells the model, and nobody else. */
  awaitedBy(call: CallId): () => void {
    // One for each wait: a call may wait twice.
    const waiter = { call };
    this.#waiters.add(waiter);
    return () => void this.#waiters.delete(waiter);
  }

  #over(end: ProcessEnd): void {
    this.phase = "over";
    this.#exists(undefined);
    this.#takeBackNotes();
    this.#takeBackLimit(); // @fault process-limit-left-behind
    const [first] = this.#waiters;
    this.#resolve(this.#desk.settle(end, first?.call));
  }
}

function stopChild(child: Child, how: "politely" | "at once"): void {
  if (how === "politely") child.stop();
  else child.stop(0);
}

function endOf(processId: ProcessId, end: ChildEnd, output: OutputNote): ProcessEnd {
  const { code, signal, durationMs, escaped, stopped } = end;
  return {
    processId,
    ...(stopped ? { stopped } : {}),
    exit: { ...(code === undefined ? {} : { code }), ...(signal === undefined ? {} : { signal }) },
    durationMs: Math.round(durationMs),
    output,
    escaped,
  };
}

/** What the log keeps of its output: how much there was, the end of it, and where the rest is. */
export function noteOf(output: Output): OutputNote {
  const { bytes } = output.counts;
  const { head, tail } = output.excerpt({ bytesMax: 2 * OUTPUT_TAIL_CHARS, plain: true });
  // Of what does not fit only the end: its beginning would read as if nothing were missing between the two.
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
