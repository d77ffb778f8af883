import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { watch } from "../../../test/fixtures/commit.ts";
import { Gate } from "../../testing/gate.ts";
import { settled } from "../../testing/manual-clock.ts";
import { Stop, Stoppable } from "./stoppable-generator.ts";

const over = { done: true, value: undefined };

/** Yields 1, 2, 3, then waits for the gate. Records registrations. */
function counter(signal?: AbortSignal) {
  const gate = new Gate();
  const registered = new Set<string>();
  const stoppable = new Stoppable(async function* (stop: Stop): AsyncGenerator<number, void> {
    stop.when(signal);
    registered.add("counter");
    stop.onStop(() => registered.delete("counter"));
    yield 1;
    yield 2;
    yield 3;
    await gate.opened;
    yield 4;
  });
  return { gate, registered, stoppable };
}

test("yields what the generator yields, and ends with it", async () => {
  const { gate, registered, stoppable } = counter();
  gate.open();
  expect(await Array.fromAsync(stoppable)).toEqual([1, 2, 3, 4]);
  expect([...registered]).toEqual([]);
  expect(await stoppable.next()).toEqual(over);
});

test("answers concurrent calls of next() in order", async () => {
  const { stoppable } = counter();
  const steps = await Promise.all([stoppable.next(), stoppable.next(), stoppable.next()]);
  expect(steps.map(({ value }) => value)).toEqual([1, 2, 3]);
});

test("runs nothing before the first next(), and never if it was stopped before that", async () => {
  const { registered, stoppable } = counter();
  expect([...registered]).toEqual([]);
  expect(await stoppable.return()).toEqual(over);
  expect(await stoppable.next()).toEqual(over);
  expect([...registered]).toEqual([]);
});

describe("stops at once while it waits", () => {
  test.each<readonly [how: string, stop: (one: Stoppable<number>, abort: AbortController) => unknown]>([
    ["by return()", (one) => one.return()],
    ["by throw()", (one) => one.throw(new Error("left")).catch(() => undefined)],
    ["by its signal", (_, abort) => abort.abort()],
    ["by the end of its scope", (one) => one[Symbol.asyncDispose]()],
  ])("%s", async (_, stop) => {
    const abort = new AbortController();
    const { gate, registered, stoppable } = counter(abort.signal);
    for (const value of [1, 2, 3]) expect(await stoppable.next()).toEqual({ done: false, value });
    const waiting = [watch(stoppable.next()), watch(stoppable.next())];
    await settled();
    expect(waiting.map(({ is }) => is)).toEqual(["waiting", "waiting"]);
    stop(stoppable, abort);
    expect([...registered]).toEqual([]);
    expect(getEventListeners(abort.signal, "abort")).toEqual([]);
    await settled();
    expect(waiting).toMatchObject([
      { is: "answered", value: over },
      { is: "answered", value: over },
    ]);
    gate.open();
    expect(await stoppable.next()).toEqual(over);
  });

  test("and ignores a later failure", async () => {
    const gate = new Gate();
    const stoppable = new Stoppable(async function* (): AsyncGenerator<number, void> {
      yield await gate.opened.then(() => Promise.reject(new Error("too late")));
    });
    const waiting = stoppable.next();
    await stoppable.return();
    expect(await waiting).toEqual(over);
    gate.open();
    await settled();
  });
});

test("removes registrations when its signal aborts between two values", async () => {
  const abort = new AbortController();
  const { registered, stoppable } = counter(abort.signal);
  await stoppable.next();
  expect([...registered]).toEqual(["counter"]);
  abort.abort();
  expect([...registered]).toEqual([]);
  expect(stoppable.stopped).toBe(true);
});

test("rejects with the failure of its generator, and has ended then", async () => {
  const stoppable = new Stoppable(async function* (): AsyncGenerator<number, void> {
    yield await Promise.reject(new Error("broken"));
  });
  await expect(stoppable.next()).rejects.toThrow("broken");
  expect(await stoppable.next()).toEqual(over);
  expect(stoppable.stopped).toBe(true);
});

test("rejects if its start throws, and has ended then", async () => {
  const stoppable = new Stoppable<number>(() => {
    throw new Error("not like this");
  });
  await expect(stoppable.next()).rejects.toThrow("not like this");
  expect(await stoppable.next()).toEqual(over);
});

test("runs a task at once if it has stopped, and each task once", () => {
  const stop = new Stop();
  const ran: string[] = [];
  stop.onStop(() => ran.push("before"));
  stop.stop();
  stop.stop();
  stop.onStop(() => ran.push("after"));
  stop.when(AbortSignal.abort());
  expect(ran).toEqual(["before", "after"]);
});
