// A thread of the store, seen from the main thread: requests in, responses out, in order.
//
// Invariants
// 1. A pending request keeps the process alive; an idle thread does not.
// 2. When a thread dies, its pending requests reject as `unavailable`. The next request starts another thread.
import { Worker } from "node:worker_threads";
import { ControlError } from "../../../core/errors.ts";
import { RenewedMap } from "../../../core/renewed-map.ts";
import { workerFile } from "../../../system/worker-file.ts";
import type { Ask, Reply } from "./message.ts";

type Verbs<V> = { readonly [K in keyof V]: { readonly ask: unknown; readonly answer: unknown } };

/** The part of a worker that is used here. */
export interface Running extends Pick<Worker, "postMessage" | "ref" | "unref" | "terminate"> {
  on(event: "message", listener: (replies: readonly Reply[]) => void): unknown;
  on(event: "error", listener: (error: unknown) => void): unknown;
  on(event: "exit", listener: () => void): unknown;
}

/** `entry`: the name of a module beside this one. */
export type Start = (entry: ThreadEntry, data: unknown) => Running;

type ThreadEntry = "writer" | "reader";

interface Outstanding {
  readonly resolve: (answer: never) => void;
  readonly reject: (error: ControlError) => void;
}

/** `V`: the requests that the thread accepts. */
export class Thread<V extends Verbs<V>> {
  readonly #entry: ThreadEntry;
  readonly #data: unknown;
  readonly #start: Start;
  readonly #outstanding = new RenewedMap<number, Outstanding>();
  #worker: Running | undefined;
  #lastId = 0;

  constructor(entry: ThreadEntry, data: unknown, start: Start = startWorker) {
    this.#entry = entry;
    this.#data = data;
    this.#start = start;
  }

  request<K extends keyof V & string>(verb: K, ask: V[K]["ask"]): Promise<V[K]["answer"]> {
    const worker = this.#running();
    this.#lastId += 1;
    const message: Ask = { id: this.#lastId, verb, ask };
    return new Promise((resolve, reject) => {
      if (this.#outstanding.size === 0) worker.ref();
      this.#outstanding.set(message.id, { resolve, reject });
      worker.postMessage(message);
    });
  }

  /** Ends the thread, whatever it is doing. Pending requests reject as `unavailable`. */
  async end(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined) return;
    this.#lose(worker, new ControlError("unavailable", "The store is closed."));
    await worker.terminate();
  }

  get started(): boolean {
    return this.#worker !== undefined;
  }

  #running(): Running {
    if (this.#worker !== undefined) return this.#worker;
    const worker = this.#start(this.#entry, this.#data);
    worker.on("message", (replies: readonly Reply[]) => this.#settle(worker, replies));
    worker.on("error", (error) => this.#died(worker, error));
    worker.on("exit", () => this.#died(worker, undefined));
    this.#worker = worker;
    return worker;
  }

  #settle(worker: Running, replies: readonly Reply[]): void {
    for (const reply of replies) {
      const request = this.#outstanding.get(reply.id);
      this.#outstanding.delete(reply.id);
      if ("code" in reply) request?.reject(new ControlError(reply.code, reply.message, { hint: reply.hint }));
      else request?.resolve(reply.answer as never);
    }
    if (this.#outstanding.size === 0) worker.unref();
  }

  #died(worker: Running, cause: unknown): void {
    this.#lose(worker, new ControlError("unavailable", `The store's ${this.#entry} has died.`, { cause }));
  }

  #lose(worker: Running, error: ControlError): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    for (const request of this.#outstanding.values()) request.reject(error);
    this.#outstanding.clear();
  }
}

function startWorker(entry: ThreadEntry, data: unknown): Running {
  // Without the program's own flags: with some of them, like --input-type, no thread can be started.
  return new Worker(workerFile(entry, import.meta.url), { workerData: data, execArgv: [] });
}
