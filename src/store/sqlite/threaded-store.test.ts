// The store with both of its threads in this one: what they do is checked in milliseconds, and can be made to fail.
import { EventEmitter } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { afterAll } from "vitest";
import type { Clock } from "../../ports.ts";
import { storeContract } from "../contract.ts";
import { type Database, openReadOnly } from "./database.ts";
import { serveReader } from "./serve-reader.ts";
import { serveWriter } from "./serve-writer.ts";
import type { Running, Start } from "./thread.ts";
import { openThreadedStore } from "./threaded-store.ts";

const directory = mkdtempSync(join(tmpdir(), "belay-threaded-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
let files = 0;
const freshFile = (): string => {
  files += 1;
  return join(directory, `${files}.db`);
};

storeContract("the SQLite store, in one thread,", async () => {
  let time = 0;
  const clock: Clock = { now: () => time, elapsed: () => time, after: () => () => undefined };
  const store = await openThreadedStore({ file: freshFile(), clock, start: inThisThread() });
  const pass = (ms: number): void => {
    time += ms;
  };
  return { store, pass };
});

/** Starts what stands for a thread: messages are copied and queued as between threads. */
function inThisThread(): Start {
  return (entry, data) => {
    const { file } = data as { readonly file: string };
    const { port1, port2 } = new MessageChannel();
    const connections: Database[] = [];
    const open = (path: string): Database => {
      const database = openReadOnly(path);
      connections.push(database);
      return database;
    };
    if (entry === "writer") serveWriter(port2, file);
    else serveReader(port2, file, open);
    return new Here(port1, () => {
      for (const database of connections) database.close();
    });
  };
}

class Here extends EventEmitter implements Running {
  readonly #port: MessagePort;
  readonly #end: () => void;

  constructor(port: MessagePort, end: () => void) {
    super();
    this.#port = port;
    this.#end = end;
    port.on("message", (replies) => this.emit("message", replies));
  }

  postMessage(message: unknown): void {
    this.#port.postMessage(message);
  }

  ref(): void {
    this.#port.ref();
  }

  unref(): void {
    this.#port.unref();
  }

  async terminate(): Promise<number> {
    this.#port.close();
    this.#end();
    return 1;
  }
}
