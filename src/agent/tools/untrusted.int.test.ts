import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { noProcesses } from "../../../test/fixtures/no-processes.ts";
import { GRACE_MS } from "../../core/limits.ts";
import type { Json } from "../../core/model/prompt.ts";
import type { LiveCall } from "../../ports/agent.ts";
import { manualClock, settled } from "../../testing/manual-clock.ts";
import { tool } from "./tool.ts";
import { UNTRUSTED_STOP_MS, UNTRUSTED_UNREAD_MAX, type Untrusted } from "./untrusted.ts";

const started: Worker[] = [];
const note = (message: unknown): void => {
  const { worker } = message as { readonly worker: Worker };
  started.push(worker);
};

beforeEach(() => {
  started.length = 0;
  subscribe("worker_threads", note);
});

/** The thread ends with its call, however the call ends. Node gives an ended thread the id -1. */
afterEach(() => {
  unsubscribe("worker_threads", note);
  expect(started.map(({ threadId }) => threadId)).toEqual(started.map(() => -1));
});

class Call implements LiveCall {
  readonly sessionId = "ses_1";
  readonly cwd = undefined;
  readonly mode = undefined;
  readonly runId = "run_1";
  readonly callId = "call_1";
  readonly name = "untrusted";
  readonly input: Json;
  readonly clock = manualClock();
  readonly processes = noProcesses;
  readonly controller = new AbortController();
  readonly signal = this.controller.signal;
  readonly stopping = false;
  readonly partials: Json[] = [];
  readonly told: Json[] = [];
  readonly changes: string[] = [];
  readonly #waiting = new Map<Json, () => void>();

  constructor(input: Json = {}) {
    this.input = input;
  }

  partial(value: Json): void {
    if (value === "refuse me") throw new Error("The partial result is refused.");
    this.partials.push(value);
    if (typeof value === "string") this.#waiting.get(value)?.();
  }
  progress(value: Json): void {
    this.told.push(value);
  }
  changed(what: string): void {
    this.changes.push(what);
  }
  ask(): Promise<never> {
    return Promise.reject(new Error("no answer"));
  }
  /** Resolves when the tool reports this partial result. Created before the call begins. */
  heard(value: string): Promise<void> {
    return new Promise((resolve) => this.#waiting.set(value, resolve));
  }
}

/** A module whose function has this body and takes (input, { signal, partial, progress, changed }). */
const body = (code: string): Untrusted => ({
  module: `data:text/javascript,${encodeURIComponent(
    `export default async function (input, { signal, partial, progress, changed }) { ${code} }`,
  )}`,
});

const run = (untrusted: Untrusted, call: LiveCall): Promise<unknown> =>
  tool({ description: "Untrusted.", input: { jsonSchema: {} }, untrusted }).execute(call);

describe("an untrusted tool", () => {
  test("gets its input, reports, and returns a result", async () => {
    const call = new Call({ n: 2 });
    const code = `partial("begun"); progress({ n: 1 }); changed("a file"); return { double: input.n * 2 };`;
    expect(await run(body(code), call)).toEqual({ double: 4 });
    expect([call.partials, call.told, call.changes]).toEqual([["begun"], [{ n: 1 }], ["a file"]]);
  });

  test("may return nothing, and its leftover timers do not outlive it", async () => {
    expect(await run(body("setInterval(() => {}, 1);"), new Call())).toBeUndefined();
  });

  test("has only the given environment, and its output is dropped", async () => {
    const code = "console.log('out'); console.error('err'); return process.env;";
    expect(await run(body(code), new Call())).toEqual({});
    expect(await run({ ...body(code), env: { KEY: "value" } }, new Call())).toEqual({ KEY: "value" });
  });

  test("can be a TypeScript module, by its path and the name of an export", async () => {
    const directory = mkdtempSync(join(tmpdir(), "belay-untrusted-"));
    try {
      const module = join(directory, "double.ts");
      writeFileSync(module, "export const double = (input: { n: number }): number => input.n * 2;\n");
      expect(await run({ module, name: "double" }, new Call({ n: 4 }))).toBe(8);
      await expect(run({ module }, new Call())).rejects.toThrow("no function `default`; it exports double");
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  test("is slowed down by backpressure when it posts faster than is read", async () => {
    const count = UNTRUSTED_UNREAD_MAX * 20;
    const call = new Call();
    await run(body(`for (let n = 0; n < ${count}; n += 1) partial(n);`), call);
    expect(call.partials).toEqual(Array.from({ length: count }, (_, n) => n));
  });
});

describe("a stop", () => {
  test("takes much less than the engine's grace period", () => {
    expect(UNTRUSTED_STOP_MS).toBeLessThan(GRACE_MS / 2);
  });

  test.each([
    ["an endless loop", "for (;;);"],
    ["an endless loop that reports", "for (;;) progress(1);"],
    ["a function that waits for ever", "await new Promise(() => {});"],
    [
      "a function that ignores its signal",
      "signal.addEventListener('abort', () => { for (;;); }); await new Promise(() => {});",
    ],
  ])("%s is terminated after a while, and its partial result is kept", async (_, code) => {
    const call = new Call();
    const begun = call.heard("begun");
    const result = run(body(`partial("begun"); ${code}`), call);
    result.catch(() => undefined);
    await begun;
    call.controller.abort(new Error("Cancelled: user"));
    expect(call.clock.pending).toEqual([{ inMs: UNTRUSTED_STOP_MS, idle: false }]);
    call.clock.tick(UNTRUSTED_STOP_MS);
    await expect(result).rejects.toThrow("Cancelled: user");
    expect(call.partials).toEqual(["begun"]);
  });

  test("a module that never finishes loading is terminated too", {
    meta: { id: "G12/endless-module-load-ended" },
  }, async () => {
    const call = new Call();
    const result = run({ module: "data:text/javascript,for(;;);" }, call);
    result.catch(() => undefined);
    await settled();
    await Promise.all(started.map((worker) => once(worker, "online")));
    call.controller.abort(new Error("Cancelled: user"));
    call.clock.tick(UNTRUSTED_STOP_MS);
    await expect(result).rejects.toThrow("Cancelled: user");
    expect(started).toHaveLength(1);
  });

  test("a function that listens to the signal stops by itself, without waiting for the timer", async () => {
    const call = new Call();
    const begun = call.heard("begun");
    const code = `partial("begun"); await new Promise((resolve) => signal.addEventListener("abort", resolve));
      partial("tidied up"); throw signal.reason;`;
    const result = run(body(code), call);
    result.catch(() => undefined);
    await begun;
    call.controller.abort(new Error("Cancelled: user"));
    await expect(result).rejects.toThrow("Cancelled: user");
    expect([call.partials, call.clock.pending]).toEqual([["begun", "tidied up"], []]);
  });

  test("a function that finishes despite the stop has finished", async () => {
    const call = new Call();
    const begun = call.heard("begun");
    const code = `partial("begun"); await new Promise((resolve) => signal.addEventListener("abort", resolve));
      return 1;`;
    const result = run(body(code), call);
    await begun;
    call.controller.abort(new Error("Cancelled: user"));
    expect(await result).toBe(1);
  });

  test("a call that was cancelled before it began does not run", async () => {
    const call = new Call();
    call.controller.abort(new Error("Cancelled: user"));
    await expect(run(body("return 1;"), call)).rejects.toThrow("Cancelled: user");
    expect(started).toEqual([]);
  });
});

describe("a failure", () => {
  const hoard = "const all = []; for (;;) all.push(new Array(1e5).fill(0).map((_, n) => ({ n })));";

  test.each([
    ["throws", body("throw new Error('no such file');"), "no such file"],
    ["throws what is no error", body("throw 'no';"), "no"],
    ["ends its process", body("process.exit(3);"), "ended by itself, with code 3, without a result"],
    [
      "throws an uncaught error",
      body("setTimeout(() => { throw new Error('late'); }); await new Promise(() => {});"),
      "died: late",
    ],
    [
      "has an unhandled rejection",
      body("Promise.reject(new Error('unheard')); await new Promise(() => {});"),
      "died: unheard",
    ],
    ["needs too much memory", { ...body(hoard), memoryMb: 16 }, "more than 16 MiB of memory"],
    ["answers what is no data", body("return () => 1;"), "could not be cloned"],
    [
      "reports an invalid partial result",
      body("partial('refuse me'); await new Promise(() => {});"),
      "partial result is refused",
    ],
    ["puts aside what is no data", body("partial(() => 1);"), "could not be cloned"],
    ["is not there", { module: new URL("./nowhere.js", import.meta.url) }, "Cannot find module"],
    ["is not JavaScript", { module: "data:text/javascript,((" }, "Unexpected end of input"],
    ["exports something else", { ...body(""), name: "other" }, "exports no function `other`; it exports default"],
  ])(
    "a tool that %s",
    { meta: { id: "agent/worker-tool-failures-reported" } },
    async (_, untrusted: Untrusted, message) => {
      await expect(run(untrusted, new Call())).rejects.toThrow(message);
    },
  );

  test("an input that cannot be cloned fails the call", async () => {
    const input = { jsonSchema: {}, validate: () => () => 1 };
    const one = tool({ description: "Untrusted.", input, untrusted: body("") });
    await expect(one.execute(new Call())).rejects.toThrow("could not be cloned");
  });
});
