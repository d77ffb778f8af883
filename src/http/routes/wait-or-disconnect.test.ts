import { expect, test } from "vitest";
import type { Outcome } from "../../core/model/cancel.ts";
import type { RunControl } from "../../ports/control.ts";
import { manualClock, settled } from "../../testing/manual-clock.ts";
import { Waits } from "./wait-or-disconnect.ts";

/** A run that ends when the test says so, and counts who listens to its promise. */
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
  // Only what is looked at here.
  const run = { id: "run_a", outcome } as unknown as RunControl;
  return { run, resolve, reject, listening: () => listening };
}

const HERE = new AbortController().signal;
const completed = { kind: "completed" } as const;

test("however many have waited for a run in vain, one thing waits for its outcome", async () => {
  const clock = manualClock();
  const waiting = new Waits(clock);
  const { run, resolve, listening } = someRun();
  for (let count = 0; count < 5; count += 1) {
    const vain = waiting.outcome(run, 1_000, HERE);
    await clock.advance(1_000);
    expect(await vain).toEqual({ outcome: undefined, waitedMs: 1_000 });
  }
  const heard = [waiting.outcome(run, 9_000, HERE), waiting.outcome(run, 9_000, HERE)];
  await clock.advance(10);
  resolve(completed);
  expect(await Promise.all(heard)).toEqual([1, 2].map(() => ({ outcome: completed, waitedMs: 10 })));
  expect(listening()).toBe(1);
  expect(clock.pending).toEqual([]);
});

test("whoever is gone, or kept by a server that closes, waits no longer; a failure is told to all", async () => {
  const clock = manualClock();
  const waiting = new Waits(clock);
  const { run, reject } = someRun();
  const gone = new AbortController();
  const left = waiting.outcome(run, 9_000, gone.signal);
  gone.abort();
  expect((await left).outcome).toBeUndefined();
  const told = waiting.outcome(run, 9_000, HERE);
  reject(new Error("no store"));
  await expect(told).rejects.toThrow("no store");
  const other = someRun();
  const kept = waiting.outcome(other.run, 9_000, HERE);
  await settled();
  waiting.close();
  expect((await kept).outcome).toBeUndefined();
  expect((await waiting.outcome(other.run, 9_000, HERE)).outcome).toBeUndefined();
  expect(clock.pending).toEqual([]);
});
