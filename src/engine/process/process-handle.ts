// A handle on a process for the code that started or looked it up, even if it has ended or another worker runs it.

import { ControlError } from "../../core/errors.ts";
import { checkMs, checkReason, invalid, optionsOf, rejectUnknown } from "../../core/input.ts";
import type { CancelReason, CancelReceipt, GivenReason } from "../../core/model/cancel.ts";
import { isProcessId, type ProcessId, type SessionId, sessionOf, type Work } from "../../core/model/ids.ts";
import type { Clock } from "../../ports/clock.ts";
import type {
  Child,
  Excerpt,
  ProcessHandle as Handle,
  Output,
  OutputFile,
  OutputPage,
  OutputPageOptions,
  ProcessInfo,
  ProcessResult,
  ProcessTree,
} from "../../ports/spawner.ts";
import { GatedPages, type YieldGate } from "../yield-gate.ts";
import type { ProcessManager } from "./process-manager.ts";
import { checkSize } from "./validate-process.ts";

/** The parts of the engine that handles use. */
export interface ProcessHost {
  readonly clock: Clock;
  readonly processes: ProcessManager;
  /** For handles of the host. */
  readonly gate: YieldGate;
  info(id: ProcessId): ProcessInfo | undefined;
  cancel(id: ProcessId, reason: CancelReason): Promise<CancelReceipt>;
  /** The recorded end of a process that has ended, or that another worker runs. */
  settled(id: ProcessId, signal: AbortSignal): Promise<ProcessResult | undefined>;
}

/** The call or turn that has the handle, if any: a result it has received is not given to a later turn. */
interface Holder {
  readonly id: Work;
  /** Ends its waits. */
  readonly waitSignal: AbortSignal | undefined;
  noteResult(result: ProcessResult): void;
}

export class ProcessHandle implements Handle {
  readonly id: ProcessId;
  readonly sessionId: SessionId;
  readonly #host: ProcessHost;
  readonly #gate: YieldGate;
  readonly #holder: Holder | undefined;

  constructor(host: ProcessHost, id: ProcessId, sessionId: SessionId, gate: YieldGate, holder?: Holder) {
    this.id = id;
    this.sessionId = sessionId;
    this.#host = host;
    this.#gate = gate;
    this.#holder = holder;
  }

  get info(): ProcessInfo | undefined {
    return this.#host.info(this.id);
  }

  get tree(): ProcessTree | undefined {
    const tree = this.#host.processes.get(this.id)?.child?.tree;
    if (tree === undefined) return undefined;
    const gate = this.#gate;
    return {
      members: () => gate.settle(() => tree.members()),
      endOthers: (kept, limits) => gate.settle(() => tree.endOthers(kept, limits)),
    };
  }

  wait(options: WaitOptions = {}): Promise<ProcessResult | undefined> {
    return this.#gate.settle(() => this.#wait(options));
  }

  async #wait(given: WaitOptions): Promise<ProcessResult | undefined> {
    const { limitMs, signal: own } = checkWait(given);
    const { processes, clock } = this.#host;
    const live = processes.get(this.id);
    const holder = this.#holder;
    const signal = either(own, holder?.waitSignal);
    const dispose = holder === undefined ? undefined : live?.awaitedBy(holder.id);
    const over = new AbortController();
    try {
      const coming = live?.result ?? this.#host.settled(this.id, over.signal);
      const result = await orLimit(clock, coming, { limitMs, signal });
      if (result !== undefined) holder?.noteResult(result);
      return result;
    } finally {
      over.abort();
      dispose?.();
    }
  }

  cancel(reason?: GivenReason): Promise<CancelReceipt> {
    // Before anything is stopped: an invalid reason that the store refuses would block all later commands.
    return this.#gate.settle(() => this.#host.cancel(this.id, checkReason(reason)));
  }

  write(data: string | Uint8Array): Promise<void> {
    return this.#gate.settle(() => {
      if (typeof data !== "string" && !ArrayBuffer.isView(data)) throw invalid("write() takes a text or bytes.");
      return this.#child("written to").write(data);
    });
  }

  endInput(): void {
    this.#child("written to").endInput();
  }

  resize(size: { readonly columns: number; readonly rows: number }): Promise<void> {
    return this.#gate.settle(() => {
      checkSize(size);
      return this.#child("resized").resize(size);
    });
  }

  output(): Promise<OutputFile | undefined> {
    return this.#gate.settle(async () => {
      const output = await this.#output();
      return output === undefined ? undefined : new GatedOutput(this.#gate, output);
    });
  }

  async #output(): Promise<OutputFile | undefined> {
    return (await this.#live()) ?? (await this.#host.processes.spawner()).output(this.id);
  }

  /** If it is just starting, once it exists. */
  async #live(): Promise<Output | undefined> {
    return (await this.#host.processes.get(this.id)?.existing)?.output;
  }

  read(options: OutputPageOptions = {}): Promise<OutputPage | undefined> {
    return this.#gate.settle(async () => (await this.#output())?.read(options));
  }

  follow(options: FollowOptions = {}): AsyncGenerator<OutputPage, void> {
    return new GatedPages(this.#gate, this.#follow(options));
  }

  async *#follow(options: FollowOptions): AsyncGenerator<OutputPage, void> {
    const live = await this.#live();
    if (live !== undefined) {
      yield* live.follow(options);
      return;
    }
    const { signal, ...first } = options;
    const kept = await this.#output();
    let offset = first.offset ?? 0;
    while (kept !== undefined && signal?.aborted !== true) {
      const page = await kept.read({ ...first, offset });
      // The last page is marked, even if it is empty: a remote reader would poll for it forever.
      if (page.to > page.from || page.missing > 0 || page.end) yield page;
      if (page.end || page.to === offset) return;
      offset = page.to;
    }
  }

  #child(what: string): Child {
    const child = this.#host.processes.get(this.id)?.child;
    if (child !== undefined) return child;
    throw new ControlError("conflict", `${this.id} cannot be ${what}: it has ended, or another worker has it.`, {
      hint: "Look at its state with list(), or start another one.",
    });
  }
}

/** Any process of a session, even one that has ended. */
export async function findProcess(
  host: ProcessHost,
  session: SessionId,
  id: string,
  gate: YieldGate,
  holder?: Holder,
): Promise<ProcessHandle> {
  if (typeof id !== "string" || !isProcessId(id)) throw invalid('The id of a process begins with "proc_".');
  if (sessionOf(id) === session && (host.processes.get(id) !== undefined || (await host.processes.isKnown(id)))) {
    return new ProcessHandle(host, id, session, gate, holder);
  }
  throw new ControlError("not_found", `There is no process ${id} in ${session}.`, {
    hint: "Use the id that starting it gave back, or list the processes of the session.",
  });
}

type FollowOptions = NonNullable<Parameters<Handle["follow"]>[0]>;

/** The output of a process, behind the gate of the handle's owner. */
class GatedOutput implements OutputFile {
  readonly #gate: YieldGate;
  readonly #output: OutputFile;

  constructor(gate: YieldGate, output: OutputFile) {
    this.#gate = gate;
    this.#output = output;
  }

  get counts(): OutputFile["counts"] {
    return this.#output.counts;
  }

  get dir(): string {
    return this.#output.dir;
  }

  read(options?: OutputPageOptions): Promise<OutputPage> {
    return this.#gate.settle(() => this.#output.read(options));
  }

  excerpt(options?: Omit<OutputPageOptions, "offset">): Excerpt {
    return this.#output.excerpt(options);
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

/** Prevents an unhandled rejection if the promise is not awaited. A caller that awaits it still gets the error. */
export function ignoreUnhandled<T>(promise: Promise<T>): Promise<T> {
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
    const dispose = limitMs === undefined ? undefined : clock.after(limitMs, () => settle(() => resolve(undefined)));
    const abort = (): void => settle(() => reject(signal?.reason));
    const settle = (then: () => void): void => {
      dispose?.();
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
