// Lists all processes in a separate thread. Reading an environment waits for the memory of its process, which the
// kernel may keep for seconds; the event loop must not wait with it.
//
// Invariants
// 1. One scan at a time. A scan that makes no progress for STALL_MS_MAX fails, and its thread is abandoned.
// 2. The process on which a thread is stuck keeps its entry; its environment is not read until that thread returns.
// 3. At most STUCK_THREADS_MAX threads are abandoned at once. With that many, scans fail: no process is reported dead.
import { Worker } from "node:worker_threads";
import { workerFile } from "../../system/worker-file.ts";
import { STALL_MS_MAX, STUCK_THREADS_MAX } from "../limits.ts";
import type { Seen } from "./proc.ts";

/** A request to the thread. `unread`: processes whose environment must not be read. */
export interface ScanRequest {
  readonly root: string;
  readonly unread: readonly number[];
  readonly progress: Int32Array;
}

export type ScanReply =
  | { readonly kind: "marked"; readonly one: Seen }
  | { readonly kind: "all"; readonly all: readonly Seen[] }
  | { readonly kind: "failed"; readonly message: string };

/** Indices of `progress`: a counter (0: not begun), the pid being read, and whether the scan is over. */
export const COUNT = 0;
export const READING = 1;
export const OVER = 2;

type Report = (one: Seen) => void;

export class ProcessScanner {
  #thread: Worker | undefined;
  #last: Promise<unknown> = Promise.resolve();
  /** Abandoned threads, by the pid that each is stuck on. */
  readonly #stuck = new Map<number, Worker>();

  /** All living processes, by a scan that begins now. `report` is called at once for each that carries a cookie. */
  scan(root: string, report?: Report): Promise<readonly Seen[]> {
    const scan = this.#last.then(() => this.#scan(root, report));
    this.#last = scan.catch(() => undefined);
    return scan;
  }

  async #scan(root: string, report: Report | undefined): Promise<readonly Seen[]> {
    if (this.#stuck.size >= STUCK_THREADS_MAX) throw new Error("Too many processes cannot be read.");
    this.#thread ??= startThread();
    const thread = this.#thread;
    const progress = new Int32Array(new SharedArrayBuffer(3 * Int32Array.BYTES_PER_ELEMENT));
    const answer = answerOf(thread, report);
    thread.ref();
    thread.postMessage({ root, unread: [...this.#stuck.keys()], progress } satisfies ScanRequest);
    try {
      const all = await Promise.race([answer, stall(progress)]);
      if (all !== "stalled") return all;
    } catch (error) {
      if (this.#thread === thread && isDead(error)) this.#thread = undefined;
      throw error;
    } finally {
      thread.unref();
    }
    this.#abandon(thread, Atomics.load(progress, READING), answer);
    throw new Error("A process could not be read in time.");
  }

  #abandon(thread: Worker, pid: number, answer: Promise<unknown>): void {
    this.#thread = undefined;
    this.#stuck.set(pid, thread);
    const back = (): void => {
      this.#stuck.delete(pid);
      void thread.terminate();
    };
    answer.then(back, back);
  }
}

/** Shared by all scans of this program. */
export const PROCESS_SCANNER = new ProcessScanner();

function startThread(): Worker {
  const thread = new Worker(workerFile("scan-worker", import.meta.url), { execArgv: [], env: {} });
  thread.unref();
  return thread;
}

class ThreadEnded extends Error {}

const isDead = (error: unknown): boolean => error instanceof ThreadEnded;

function answerOf(thread: Worker, report: Report | undefined): Promise<readonly Seen[]> {
  return new Promise((resolve, reject) => {
    const over = (settle: () => void): void => {
      thread.off("message", onReply);
      thread.off("error", onError);
      thread.off("exit", onExit);
      settle();
    };
    const onReply = (reply: ScanReply): void => {
      if (reply.kind === "marked") report?.(reply.one);
      else if (reply.kind === "all") over(() => resolve(reply.all));
      else over(() => reject(new Error(reply.message)));
    };
    const onError = (error: Error): void => over(() => reject(new ThreadEnded(error.message, { cause: error })));
    const onExit = (): void => over(() => reject(new ThreadEnded("The thread that lists processes has ended.")));
    thread.on("message", onReply);
    thread.on("error", onError);
    thread.on("exit", onExit);
  });
}

/** Resolves when no process was read for STALL_MS_MAX. Never resolves once the scan is over. */
async function stall(progress: Int32Array): Promise<"stalled"> {
  for (;;) {
    const before = Atomics.load(progress, COUNT);
    const result = await Atomics.waitAsync(progress, OVER, 0, STALL_MS_MAX).value;
    if (result !== "timed-out") return new Promise(() => undefined);
    // A starting thread loads its modules first, which takes long on a busy machine.
    if (before > 0 && Atomics.load(progress, COUNT) === before) return "stalled";
  }
}
