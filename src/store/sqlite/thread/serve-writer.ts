// The writer's thread: takes the requests that were queued while it was busy, and writes them with one commit.
//
// Invariants
// 1. Requests are carried out in the order in which they were made.
// 2. A response is posted after its commit.
// 3. If the file could not be opened, every request tries again and reports why it failed.
import { MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { Bug } from "../../../core/bug.ts";
import { type ControlError, toControlError } from "../../../core/errors.ts";
import type { SessionId } from "../../../core/model/ids.ts";
import { isTight } from "../file/file-system.ts";
import { type OpenFile, openFile } from "../file/open-file.ts";
import { GROUP_BATCHES_MAX } from "../limits.ts";
import { fullError, storeError } from "../sqlite-errors.ts";
import { type Ask, type Cell, type PackedBatch, packWritten, type Reply, refusal, unpackBatches } from "./message.ts";

/** Responds to the requests on `port` until it is closed. */
export function serveWriter(port: MessagePort, file: string, open: (file: string) => OpenFile = openFile): void {
  const context = new WriterWorker(port, file, open);
  port.on("message", (first: Ask) => context.serve(first));
}

class WriterWorker {
  readonly #port: MessagePort;
  readonly #file: string;
  readonly #open: (file: string) => OpenFile;
  #opened: OpenFile | undefined;

  constructor(port: MessagePort, file: string, open: (file: string) => OpenFile) {
    this.#port = port;
    this.#file = file;
    this.#open = open;
  }

  serve(first: Ask): void {
    for (let next: Ask | undefined = first; next !== undefined; ) next = this.#work(next);
  }

  /**
   * Carries out one request, or a group of appends. Returns a request that was taken from the queue but not carried
   * out.
   */
  #work(first: Ask): Ask | undefined {
    if (first.verb !== "append") {
      this.#port.postMessage([this.#attempt(first)]);
      return this.#take();
    }
    const group = [first];
    const batches = [...unpackBatches(first.ask as readonly Cell[])];
    const counts = [batches.length];
    let next = this.#take();
    while (next?.verb === "append" && batches.length < GROUP_BATCHES_MAX) {
      const more = unpackBatches(next.ask as readonly Cell[]);
      group.push(next);
      batches.push(...more);
      counts.push(more.length);
      next = this.#take();
    }
    this.#port.postMessage(this.#append(group, batches, counts));
    return next;
  }

  /** The next queued request. Where the port is not one of Node's, each request arrives as its own message. */
  #take(): Ask | undefined {
    if (!(this.#port instanceof MessagePort)) return undefined;
    return receiveMessageOnPort(this.#port)?.message as Ask | undefined;
  }

  #append(group: readonly Ask[], batches: readonly PackedBatch[], counts: readonly number[]): readonly Reply[] {
    let done = 0;
    try {
      const written = this.#theFile().writer.append(batches);
      return group.map(({ id }, index): Reply => {
        const answer: Cell[] = [];
        for (const one of written.slice(done, done + (counts[index] ?? 0))) packWritten(answer, one);
        done += counts[index] ?? 0;
        return { id, answer };
      });
    } catch (error) {
      return group.map(({ id }) => this.#failed(id, error));
    }
  }

  #attempt({ id, verb, ask }: Ask): Reply {
    try {
      return { id, answer: this.#execute(verb, ask) };
    } catch (error) {
      return this.#failed(id, error);
    }
  }

  #execute(verb: string, ask: unknown): unknown {
    switch (verb) {
      case "open":
      case "epochs":
        return this.#theFile().epochs();
      case "trim": {
        const { session, before } = ask as { readonly session: SessionId; readonly before: number };
        return this.#theFile().writer.trim(session, before);
      }
      case "remove":
        return this.#theFile().writer.remove(ask as SessionId);
      case "reclaim":
        return this.#theFile().writer.reclaim();
      case "ready":
        this.#theFile().writer.probe();
        return null;
      case "look":
        this.#theFile().look();
        return null;
      case "close": {
        const opened = this.#opened;
        this.#opened = undefined;
        opened?.close();
        return null;
      }
      default:
        throw new Bug(`the writer knows no ${verb}`);
    }
  }

  #theFile(): OpenFile {
    this.#opened ??= this.#open(this.#file);
    return this.#opened;
  }

  #failed(id: number, error: unknown): Reply {
    return refusal(id, error instanceof Bug ? toControlError(error) : this.#errorOf(error));
  }

  /** With a full disk, SQLite may only report that something failed. By then nothing of this request was written. */
  #errorOf(error: unknown): ControlError {
    const found = storeError(error, this.#file);
    return found.code === "unavailable" && isTight(this.#file) ? fullError(this.#file, found) : found;
  }
}
