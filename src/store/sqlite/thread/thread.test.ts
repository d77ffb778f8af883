import { EventEmitter } from "node:events";
import { describe, expect, it } from "vitest";
import { refusedAs } from "../../contract/facts.ts";
import type { Ask, Reply } from "./message.ts";
import { type Running, type Start, Thread } from "./thread.ts";

interface Verbs {
  read: { readonly ask: number; readonly answer: string };
}

describe("a request of a thread", () => {
  it("gets its own response, in whatever order they arrive", async () => {
    const { thread, worker } = started();
    const [first, second] = [thread.request("read", 7), thread.request("read", 8)];
    expect(worker().asked).toEqual([
      { id: 1, verb: "read", ask: 7 },
      { id: 2, verb: "read", ask: 8 },
    ]);
    worker().answer(
      { id: 2, answer: "eight" },
      { id: 99, answer: "nobody's" },
      { id: 98, code: "internal", message: "", hint: "" },
    );
    worker().answer({ id: 1, answer: "seven" });
    expect([await first, await second]).toEqual(["seven", "eight"]);
  });

  it("rejects with the code of its error", async () => {
    const { thread, worker } = started();
    const asked = thread.request("read", 7);
    worker().answer({ id: 1, code: "store_full", message: "No space.", hint: "Make some." });
    const refusal = { name: "ControlError", code: "store_full", message: "No space.", hint: "Make some." };
    await expect(asked).rejects.toMatchObject(refusal);
  });

  it("keeps the process alive while it is pending, and no longer", async () => {
    const { thread, worker } = started();
    const asked = [thread.request("read", 1), thread.request("read", 2)];
    expect(worker().keeps).toBe(true);
    worker().answer({ id: 1, answer: "" });
    expect(worker().keeps).toBe(true);
    worker().answer({ id: 2, answer: "" });
    expect(worker().keeps).toBe(false);
    await Promise.all(asked);
    const last = thread.request("read", 3);
    expect(worker().keeps).toBe(true);
    worker().answer({ id: 3, answer: "" });
    await last;
  });
});

describe("a thread that dies", () => {
  it("G28: rejects pending requests as unavailable with a reason, and is replaced for the next request", async () => {
    const { thread, worker, workers } = started();
    const asked = [thread.request("read", 1), thread.request("read", 2)];
    const cause = new Error("out of memory");
    worker().emit("error", cause);
    const told = { code: "unavailable", message: "The store's reader has died.", cause };
    for (const one of asked) await expect(one).rejects.toMatchObject(told);
    expect(thread.started).toBe(false);
    const next = thread.request("read", 3);
    expect(workers).toHaveLength(2);
    expect(worker().keeps).toBe(true);
    // The exit of the first thread does not affect the second.
    workers[0]?.emit("exit");
    expect(thread.started).toBe(true);
    worker().answer({ id: 3, answer: "three" });
    expect(await next).toBe("three");
    expect(workers.map(({ data }) => data)).toEqual([{ file: "a.db" }, { file: "a.db" }]);
  });

  it("G28: is detected even if it only exits", async () => {
    const { thread, worker } = started();
    const asked = thread.request("read", 1);
    worker().emit("exit");
    await refusedAs("unavailable", asked);
    expect(thread.started).toBe(false);
  });
});

describe("a thread that is ended", () => {
  it("rejects pending requests as unavailable, and terminates", async () => {
    const { thread, worker } = started();
    const asked = thread.request("read", 1);
    const refusal = expect(asked).rejects.toMatchObject({ code: "unavailable", message: "The store is closed." });
    expect(thread.started).toBe(true);
    await thread.end();
    await refusal;
    expect(worker().terminated).toBe(true);
    expect(thread.started).toBe(false);
  });

  it("need not have been started", async () => {
    const { thread, workers } = started();
    expect(thread.started).toBe(false);
    await thread.end();
    expect(workers).toHaveLength(0);
  });
});

class FakeWorker extends EventEmitter implements Running {
  readonly asked: Ask[] = [];
  readonly data: unknown;
  keeps = false;
  terminated = false;

  constructor(data: unknown) {
    super();
    this.data = data;
  }

  answer(...replies: readonly Reply[]): void {
    this.emit("message", replies);
  }

  postMessage(message: Ask): void {
    this.asked.push(message);
  }

  ref(): void {
    this.keeps = true;
  }

  unref(): void {
    this.keeps = false;
  }

  async terminate(): Promise<number> {
    this.terminated = true;
    return 1;
  }
}

/** A thread whose workers only record their requests. */
function started() {
  const workers: FakeWorker[] = [];
  const start: Start = (_, data) => {
    const worker = new FakeWorker(data);
    workers.push(worker);
    return worker;
  };
  const worker = (): FakeWorker => {
    const last = workers.at(-1);
    if (last === undefined) throw new Error("none was started");
    return last;
  };
  return { thread: new Thread<Verbs>("reader", { file: "a.db" }, start), worker, workers };
}
