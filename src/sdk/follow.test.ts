// Leaving the events of a session or a run, at any time.
import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { openTestBelay, waits } from "../../test/fixtures/belay.ts";
import { settled } from "../testing/manual-clock.ts";

const over = { done: true, value: undefined };

test("the events of a session end in the middle of a page when their signal aborts", async () => {
  const { belay } = await openTestBelay({ talk: () => "hello" });
  const session = await belay.createSession();
  await session.prompt("talk").outcome;
  const stop = new AbortController();
  const seen: string[] = [];
  for await (const event of session.events({ signal: stop.signal })) {
    seen.push(event.type);
    if (seen.length === 2) stop.abort();
  }
  expect(seen).toEqual(["session.created", "run.accepted"]);
});

test("G32: leaving waiting events of a session or run ends them at once, and cancels nothing", async () => {
  const { belay, began } = await openTestBelay({ live: waits });
  const session = await belay.createSession();
  const run = session.prompt("live");
  await began("live");
  const { asOf: after } = await session.explain();
  for (const events of [session.events({ after }), session.pages({ after }), run[Symbol.asyncIterator]()]) {
    const seen: unknown[] = [];
    const reading = (async () => {
      for (;;) {
        const step = await events.next();
        if (step.done === true) return step;
        seen.push(step.value);
      }
    })();
    await settled();
    expect(await events.return(undefined)).toEqual(over);
    expect(await reading).toEqual(over);
  }
  expect(await run.row()).toMatchObject({ phase: "live" });
});

test("events that were never read register nothing, and those with an aborted signal deregister", async () => {
  const { belay } = await openTestBelay({});
  const session = await belay.createSession();
  const stop = new AbortController();
  session.events({ signal: stop.signal });
  expect(getEventListeners(stop.signal, "abort")).toHaveLength(0);
  const events = session.events({ signal: stop.signal });
  await events.next();
  expect(getEventListeners(stop.signal, "abort")).toHaveLength(1);
  stop.abort();
  expect(getEventListeners(stop.signal, "abort")).toHaveLength(0);
  expect(await events.next()).toEqual(over);
});
