// A process as whoever started it, or found it, holds it: also one that has ended, or that another worker has.
import type { CancelReason, CancelReceipt, GivenReason } from "../core/cancel.ts";
import { ControlError } from "../core/control-error.ts";
import type { CallId, ProcessId, SessionId } from "../core/ids.ts";
import type { Clock } from "../ports.ts";
import type {
  Child,
  ProcessHandle as Handle,
  Output,
  OutputFile,
  OutputPage,
  PageWish,
  ProcessInfo,
  ProcessResult,
} from "../spawner.ts";
import type { Processes } from "./processes.ts";
import type { Scope } from "./scope.ts";
import { checkMs, checkReason, invalid, optionsOf, rejectUnknown } from "./validate.ts";
import { checkSize } from "./validate-process.ts";

/** What a handle needs of the house. */
export interface HandleDesk {
  readonly clock: Clock;
  readonly processes: Processes;
  info(id: ProcessId): ProcessInfo | undefined;
  cancel(id: ProcessId, reason: CancelReason): Promise<CancelReceipt>;
  /** How it ended, once the log has it: for a process that another worker has. */
  settled(id: ProcessId, signal: AbortSignal): Promise<ProcessResult | undefined>;
}

/** The call that holds it, if one does: what it is told is not told again. */
export interface Holder {
  readonly callId: CallId;
  readonly scope: Scope;
  heard(id: ProcessId): void;
}

export class ProcessHandle implements Handle {
  readonly id: ProcessId;
  readonly sessionId: SessionId;
  readonly #desk: HandleDesk;
  readonly #holder: Holder | undefined;

  constructor(desk: HandleDesk, id: ProcessId, sessionId: SessionId, holder?: Holder) {
    this.id = id;
    this.sessionId = sessionId;
    this.#desk = desk;
    this.#holder = holder;
  }

  get info(): ProcessInfo | undefined {
    return this.#desk.info(this.id);
  }

  wait(options: WaitOptions = {}): Promise<ProcessResult | undefined> {
    return unpunished(this.#wait(options));
  }

  async #wait(given: WaitOptions): Promise<ProcessResult | undefined> {
    const { limitMs, signal: own } = checkWait(given);
    const { processes, clock } = this.#desk;
    const live = processes.get(this.id);
    const holder = this.#holder;
    const signal = either(own, holder?.scope.signal);
    const takeBack = holder === undefined ? undefined : live?.awaitedBy(holder.callId);
    const over = new AbortController();
    try {
      const coming = live?.result ?? this.#elsewhere(over.signal);
      const result = await orLimit(clock, coming, { limitMs, signal });
      if (result !== undefined) holder?.heard(this.id);
      return result;
    } finally {
      over.abort();
      takeBack?.();
    }
  }

  async #elsewhere(signal: AbortSignal): Promise<ProcessResult | undefined> {
    return (await this.#desk.processes.ended(this.id)) ?? this.#desk.settled(this.id, signal);
  }

  async cancel(reason?: GivenReason): Promise<CancelReceipt> {
    // Before anything is stopped: what the store cannot take would hold up everything that comes after it.
    return this.#desk.cancel(this.id, checkReason(reason));
  }

  async write(data: string | Uint8Array): Promise<void> {
    if (typeof data !== "string" && !ArrayBuffer.isView(data)) throw invalid("write() takes a text or bytes.");
    await this.#child("written to").write(data);
  }

  endInput(): void {
    this.#child("written to").endInput();
  }

  async resize(size: { readonly columns: number; readonly rows: number }): Promise<void> {
    checkSize(size);
    await this.#child("resized").resize(size);
  }

  async output(): Promise<OutputFile | undefined> {
    return (await this.#live()) ?? (await this.#desk.processes.spawner()).output(this.id);
  }

  /** Of one that is only just starting, once it exists. */
  async #live(): Promise<Output | undefined> {
    return (await this.#desk.processes.get(this.id)?.existing)?.output;
  }

  async read(wish: PageWish = {}): Promise<OutputPage | undefined> {
    return (await this.output())?.read(wish);
  }

  async *follow(wish: PageWish & { readonly signal?: AbortSignal } = {}): AsyncGenerator<OutputPage, void> {
    const live = await this.#live();
    if (live !== undefined) {
      yield* live.follow(wish);
      return;
    }
    const { signal, ...first } = wish;
    const kept = await this.output();
    let offset = first.offset ?? 0;
    while (kept !== undefined && signal?.aborted !== true) {
      const page = await kept.read({ ...first, offset });
      // The last one says so, even if it has nothing else to say: whoever is far away would come back for it for ever.
      if (page.to > page.from || page.missing > 0 || page.end) yield page;
      if (page.end || page.to === offset) return;
      offset = page.to;
    }
  }

  #child(what: string): Child {
    const child = this.#desk.processes.get(this.id)?.child;
    if (child !== undefined) return child;
    throw new ControlError("conflict", `${this.id} cannot be ${what}: it has ended, or another worker has it.`, {
      hint: "Look at its state with list(), or start another one.",
    });
  }
}

interface WaitOptions {
  readonly limitMs?: number;
  readonly signal?: AbortSignal;
}

function checkWait(given: WaitOptions): WaitOptions {
  const { limitMs, signal, ...rest } = optionsOf(given, "wait()");
  rejectUnknown(rest, "wait()");
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalid("`signal` is an AbortSignal.");
  return {
    ...(limitMs === undefined ? {} : { limitMs: checkMs(limitMs, "limitMs", 2 ** 31) }),
    ...(signal === undefined ? {} : { signal }),
  };
}

/** Whoever does not look at an answer is not taken down by its rejection; whoever does still sees it. */
export function unpunished<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

function either(one: AbortSignal | undefined, other: AbortSignal | undefined): AbortSignal | undefined {
  return one === undefined || other === undefined ? (one ?? other) : AbortSignal.any([one, other]);
}

/** Undefined: the limit came first. Rejects when `signal` aborts. */
export function orLimit<T>(
  clock: Clock,
  coming: Promise<T>,
  { limitMs, signal }: { readonly limitMs: number | undefined; readonly signal?: AbortSignal | undefined },
): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const takeBack = limitMs === undefined ? undefined : clock.after(limitMs, () => settle(() => resolve(undefined)));
    const abort = (): void => settle(() => reject(signal?.reason));
    const settle = (then: () => void): void => {
      takeBack?.();
      signal?.removeEventListener("abort", abort);
      then();
    };
    coming.then(
      (value) => settle(() => resolve(value)),
      (error: unknown) => settle(() => reject(error)),
    );
    if (signal?.aborted === true) return abort();
    signal?.addEventListener("abort", abort);
  });
}
