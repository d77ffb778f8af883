import { expect, test } from "vitest";
import type { Outcome } from "../../core/model/cancel.ts";
import type { RunControl } from "../../ports/control.ts";
import { manualClock, settled } from "../../testing/manual-clock.ts";
import { Waits } from "./wait-or-disconnect.ts";

/** A run that the test settles, and that counts the listeners of its promise. */
function someRun() {
  const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
  let listening = 0;
  const outcome = new Proxy(promise, {
    get: (target, name) => {
      if (name === "then") listening += 1;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  // Only the properties that are used here.
  const run = { id: "run_a", outcome } as unknown as RunControl;
  return { run, resolve, reject, listening: () => listening };
}

const HERE = new AbortController().signal;
const completed = { kind: "completed" } as const;

test("however many requests have waited for a run, one promise listens for its outcome", async () => {
  const clock = manualClock();
  const waiting = new Waits(clock);
  const { run, resolve, listening } = someRun();
  for (let count = 0; count < 5; count += 1) {
    const timedOut = waiting.outcome(run, 1_000, HERE);
    await clock.advance(1_000);
    expect(await timedOut).toEqual({ outcome: undefined, waitedMs: 1_000 });
  }
  const waits = [waiting.outcome(run, 9_000, HERE), waiting.outcome(run, 9_000, HERE)];
  await clock.advance(10);
  resolve(completed);
  expect(await Promise.all(waits)).toEqual([1, 2].map(() => ({ outcome: completed, waitedMs: 10 })));
  expect(listening()).toBe(1);
  expect(clock.pending).toEqual([]);
});

test("a disconnect and a shutdown end a wait, and an error rejects all waits", async () => {
  const clock = manualClock();
  const waiting = new Waits(clock);
  const { run, reject } = someRun();
  const gone = new AbortController();
  const left = waiting.outcome(run, 9_000, gone.signal);
  gone.abort();
  expect((await left).outcome).toBeUndefined();
  const failed = waiting.outcome(run, 9_000, HERE);
  reject(new Error("no store"));
  await expect(failed).rejects.toThrow("no store");
  const other = someRun();
  const ended = waiting.outcome(other.run, 9_000, HERE);
  await settled();
  waiting.close();
  expect((await ended).outcome).toBeUndefined();
  expect((await waiting.outcome(other.run, 9_000, HERE)).outcome).toBeUndefined();
  expect(clock.pending).toEqual([]);
});
