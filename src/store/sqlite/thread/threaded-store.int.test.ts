// The store with both of its threads run in this one, so that tests are fast and can make them fail.
import { EventEmitter } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { afterAll, describe, expect, it } from "vitest";
import { PAGE_CHARS_MAX } from "../../../core/limits.ts";
import { storeContract } from "../../contract/contract.ts";
import { accepted, add, batch, created, refusedAs, SES } from "../../contract/facts.ts";
import { type Database, openReadOnly } from "../database.ts";
import { openFile } from "../file/open-file.ts";
import { EPOCH_BLOCK } from "../limits.ts";
import { openSqliteStore } from "../sqlite-store.ts";
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
  const clock = { elapsed: () => time };
  const store = await openThreadedStore({ file: freshFile(), clock, start: inThisThread().start });
  const pass = (ms: number): void => {
    time += ms;
  };
  return { store, pass };
});

const clock = { elapsed: () => 0 };
const never = new AbortController().signal;

describe("a page of the log", () => {
  it("contains no more text than a reader should keep in memory, whatever its limit", async () => {
    const store = await openThreadedStore({ file: freshFile(), clock, start: inThisThread().start });
    const text = "x".repeat(PAGE_CHARS_MAX / 2);
    await add(store, SES, 0, [created(SES)]);
    for (const head of [1, 2, 3, 4]) await add(store, SES, head, [accepted(`run_${head}`, { text })]);
    expect((await store.read(SES, { after: 0, limit: 100 })).events).toHaveLength(3);
    expect((await store.read(SES, { after: 3, limit: 100 })).events).toHaveLength(2);
    await store.close();
  });
});

describe("claims", () => {
  it("G26: rise over restarts, by a whole block of epochs", async () => {
    const file = freshFile();
    for (const block of [0, 1, 2]) {
      const store = await openThreadedStore({ file, clock, start: inThisThread().start });
      const epoch = block * EPOCH_BLOCK + 1;
      expect(await store.claim(SES, "wrk_a", 1)).toEqual({ kind: "claimed", epoch });
      expect(await store.claim("ses_b", "wrk_a", 1)).toEqual({ kind: "claimed", epoch: epoch + 1 });
      await store.close();
    }
  });
});

describe("a waiter for the growth of a log", () => {
  it("resolves at once for events that were there before the store was opened", async () => {
    const file = freshFile();
    const before = await openThreadedStore({ file, clock, start: inThisThread().start });
    await add(before, SES, 0, [created(SES)]);
    await before.close();
    const store = await openThreadedStore({ file, clock, start: inThisThread().start });
    await store.grown(SES, 0, never);
    await store.close();
  });

  it("is not misled by a response that arrives after that of a later append", async () => {
    const file = freshFile();
    const before = await openThreadedStore({ file, clock, start: inThisThread().start });
    await add(before, SES, 0, [created(SES)]);
    await before.close();
    const { start, threads } = inThisThread();
    const store = await openThreadedStore({ file, clock, start });
    await store.load("ses_none");
    const waiting = store.grown(SES, 1, never);
    const answered = threads.reader?.hold();
    await answered?.come;
    await add(store, SES, 1, [accepted("run_1")]);
    answered?.release();
    await waiting;
    // Its response comes later, so the previous one has arrived.
    await store.load(SES);
    await store.grown(SES, 1, never);
    await store.close();
  });

  it("wakes on an error of the file, gets it from the next read, and waits again once it is over", async () => {
    let trouble = true;
    const { start } = inThisThread((path) => {
      if (trouble) throw new Error("no such disk");
      return openReadOnly(path);
    });
    const store = await openThreadedStore({ file: freshFile(), clock, start });
    await store.grown(SES, 0, never);
    await refusedAs("unavailable", store.read(SES, { after: 0, limit: 1 }));
    trouble = false;
    const waiting = store.grown(SES, 0, never);
    await add(store, SES, 0, [created(SES)]);
    await waiting;
    await store.close();
  });

  it("G28: wakes when the result of an append is unknown, and reads the file", async () => {
    const { start, threads } = inThisThread();
    const store = await openThreadedStore({ file: freshFile(), clock, start });
    await add(store, SES, 0, [created(SES)]);
    const waiting = store.grown(SES, 1, never);
    const lost = store.append(batch(SES, 1, [accepted("run_1")]));
    const answered = threads.writer?.hold();
    await answered?.come;
    threads.writer?.die(new Error("out of memory"));
    await refusedAs("unavailable", lost);
    await waiting;
    // It had been written.
    await store.grown(SES, 1, never);
    await add(store, SES, 2, [accepted("run_2")]);
    await store.close();
  });
});

describe("closing", () => {
  it("starts no writer only to close it", async () => {
    const { start, threads, started } = inThisThread();
    const store = await openThreadedStore({ file: freshFile(), clock, start });
    threads.writer?.die(new Error("out of memory"));
    await store.close();
    expect(started).toEqual(["writer"]);
  });

  it("ends both threads, once, however often it is called", async () => {
    const { start, threads } = inThisThread();
    const store = await openThreadedStore({ file: freshFile(), clock, start });
    await store.load(SES);
    await Promise.all([store.close(), store.close()]);
    expect([threads.writer?.ended, threads.reader?.ended]).toEqual([1, 1]);
  });

  it("happens after a failed opening too", async () => {
    const { start, threads } = inThisThread();
    const file = freshFile();
    mkdirSync(file);
    await refusedAs("invalid", openThreadedStore({ file, clock, start }));
    expect(threads.writer?.ended).toBe(1);
  });
});

describe("readiness", () => {
  it("is that of the file", async () => {
    const file = freshFile();
    const { start } = inThisThread();
    const store = await openThreadedStore({ file, clock, start });
    await store.ready?.();
    const other = new DatabaseSync(file);
    other.exec("CREATE TRIGGER no BEFORE UPDATE ON store BEGIN SELECT RAISE(ABORT, 'not today'); END");
    other.close();
    await refusedAs("internal", store.ready?.() ?? Promise.resolve());
    await store.close();
  });
});

describe("with real threads", () => {
  it("leases use the machine's clock, and a link leads to the same file", async () => {
    const file = freshFile();
    writeFileSync(file, "");
    symlinkSync(file, `${file}.link`);
    const store = await openSqliteStore({ file: `${file}.link` });
    expect(existsSync(`${file}.lock`)).toBe(true);
    await store.claim(SES, "wrk_a", 60_000);
    const held = await store.claim(SES, "wrk_b", 60_000);
    expect(held.kind === "held" && held.forMs > 0 && held.forMs <= 60_000).toBe(true);
    await store.close();
  });
});

/** Starts a stand-in for a thread: messages are copied and queued as between threads. */
function inThisThread(openReader: (path: string) => Database = openReadOnly) {
  const threads: { writer?: Here; reader?: Here } = {};
  const started: string[] = [];
  const start: Start = (entry, data) => {
    const { file } = data as { readonly file: string };
    const { port1, port2 } = new MessageChannel();
    const open = new Set<{ close(): void }>();
    const kept = <C extends { close(): void }>(one: C): C => {
      open.add(one);
      return one;
    };
    if (entry === "writer") {
      serveWriter(port2, file, (path) => {
        const opened = openFile(path);
        const close = (): void => {
          open.delete(opened);
          opened.close();
        };
        return { ...kept(opened), close };
      });
    } else serveReader(port2, file, (path) => kept(openReader(path)));
    const here = new Here(port1, () => {
      for (const one of open) one.close();
    });
    started.push(entry);
    threads[entry] = here;
    return here;
  };
  return { start, threads, started };
}

class Here extends EventEmitter implements Running {
  readonly #port: MessagePort;
  readonly #end: () => void;
  #held: { readonly replies: unknown[]; readonly come: () => void } | undefined;
  ended = 0;

  constructor(port: MessagePort, end: () => void) {
    super();
    this.#port = port;
    this.#end = end;
    port.on("message", (replies) => {
      if (this.#held === undefined) {
        this.emit("message", replies);
        return;
      }
      this.#held.replies.push(replies);
      this.#held.come();
    });
  }

  /** Holds responses back from now on: `come` resolves when there is one, `letGo` releases them. */
  hold(): { readonly come: Promise<void>; readonly release: () => void } {
    const { promise, resolve } = Promise.withResolvers<void>();
    const replies: unknown[] = [];
    this.#held = { replies, come: resolve };
    const release = (): void => {
      this.#held = undefined;
      for (const one of replies) this.emit("message", one);
    };
    return { come: promise, release };
  }

  /** As a thread that runs out of memory: its resources are freed. */
  die(error: Error): void {
    this.#port.close();
    this.#end();
    this.emit("error", error);
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
    this.ended += 1;
    this.#port.close();
    this.#end();
    return 1;
  }
}
