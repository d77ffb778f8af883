// What is told to those who watch a whole house.
import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { CHRONICLE_CHARS_MAX, CHRONICLE_EVENTS_MAX } from "../../core/limits.ts";
import type { Recorded } from "../../core/model/event.ts";
import { heapBytes } from "../../core/size.ts";
import type { AllSessionsEvent } from "../../ports/control.ts";
import { settled } from "../../testing/manual-clock.ts";
import { AllSessionsFeed } from "./all-sessions-feed.ts";

const event = (seq: number, text = ""): Recorded => ({
  ...({ type: "turn.extended", runId: "run_a", turnId: "turn_a.1" } as const),
  ...{ text, seq, at: 1 },
});
const started = (signal?: AbortSignal) => ({ after: undefined, prefix: "ses_", signal });

async function next(watch: AsyncGenerator<AllSessionsEvent, void>): Promise<AllSessionsEvent> {
  const one = await watch.next();
  if (one.done === true) throw new Error("The watching has ended.");
  return one.value;
}

test("a watcher hears first where it stands, and then everything of every session, in order", {
  meta: { id: "G29/all-sessions-in-order" },
}, async () => {
  const chronicle = new AllSessionsFeed("wrk_1");
  const watch = chronicle.watch(started());
  const here = await next(watch);
  expect(here).toEqual({ type: "here", cursor: "wrk_1.0" });
  chronicle.push("ses_a", [event(1), event(2)]);
  chronicle.push("ses_b", [event(1)]);
  expect([await next(watch), await next(watch), await next(watch)]).toMatchObject([
    { cursor: "wrk_1.1", sessionId: "ses_a", event: { seq: 1 } },
    { cursor: "wrk_1.2", sessionId: "ses_a", event: { seq: 2 } },
    { cursor: "wrk_1.3", sessionId: "ses_b", event: { seq: 1 } },
  ]);
  const again = chronicle.watch({ after: "wrk_1.2", prefix: "ses_", signal: undefined });
  expect([await next(again), await next(again)]).toMatchObject([
    { type: "here", cursor: "wrk_1.2" },
    { cursor: "wrk_1.3" },
  ]);
});

test("G35: a watcher of one tenant hears nothing of another's", {
  meta: { id: "G35/watcher-sees-own-tenant-only" },
}, async () => {
  const chronicle = new AllSessionsFeed("wrk_1");
  const watch = chronicle.watch({ after: undefined, prefix: "ses_acme.", signal: undefined });
  await next(watch);
  chronicle.push("ses_other.1", [event(1)]);
  chronicle.push("ses_acmeplus.1", [event(1)]);
  chronicle.push("ses_acme.1", [event(7)]);
  expect(await next(watch)).toMatchObject({ sessionId: "ses_acme.1", event: { seq: 7 } });
});

test.each(["wrk_0.1", "wrk_1.99", "wrk_1.-1", "wrk_1.x", "", ".", "wrk_1.1e3"])(
  "G30: a cursor that means nothing here is told that something was missed: %j",
  { meta: { id: "G30/meaningless-cursor-reports-gap" } },
  async (after) => {
    const chronicle = new AllSessionsFeed("wrk_1");
    await next(chronicle.watch(started()));
    chronicle.push("ses_a", [event(1)]);
    const watch = chronicle.watch({ after, prefix: "ses_", signal: undefined });
    expect(await next(watch)).toEqual({ type: "missed", cursor: "wrk_1.1" });
    chronicle.push("ses_a", [event(2)]);
    expect(await next(watch)).toMatchObject({ event: { seq: 2 } });
  },
);

test("G31: a watcher that does not read is told once that it missed something; what is kept is bounded", async () => {
  const chronicle = new AllSessionsFeed("wrk_1");
  const watch = chronicle.watch(started());
  await next(watch);
  for (let seq = 1; seq <= 3 * CHRONICLE_EVENTS_MAX; seq += 1) chronicle.push("ses_a", [event(seq)]);
  expect(chronicle.kept).toBeLessThanOrEqual(CHRONICLE_EVENTS_MAX);
  expect(await next(watch)).toEqual({ type: "missed", cursor: `wrk_1.${3 * CHRONICLE_EVENTS_MAX}` });
  chronicle.push("ses_a", [event(7)]);
  expect(await next(watch)).toMatchObject({ event: { seq: 7 } });
  const long = "x".repeat(CHRONICLE_CHARS_MAX / 4);
  for (let seq = 1; seq <= 20; seq += 1) chronicle.push("ses_a", [event(seq, long)]);
  expect(chronicle.kept).toBeLessThanOrEqual(4);
});

test("what is larger than all that may be kept is told to nobody, and said to be missed", async () => {
  const chronicle = new AllSessionsFeed("wrk_1");
  const watch = chronicle.watch(started());
  await next(watch);
  chronicle.push("ses_a", [event(1, "x".repeat(CHRONICLE_CHARS_MAX + 1))]);
  expect(await next(watch)).toEqual({ type: "missed", cursor: "wrk_1.1" });
});

test("a watcher ends with its signal and with the house, also while it waits", async () => {
  const chronicle = new AllSessionsFeed("wrk_1");
  const stop = new AbortController();
  const one = chronicle.watch(started(stop.signal));
  const other = chronicle.watch(started());
  await Promise.all([next(one), next(other)]);
  const ends = [one.next(), other.next()];
  stop.abort();
  expect(await ends[0]).toMatchObject({ done: true });
  chronicle.close();
  expect(await ends[1]).toMatchObject({ done: true });
});

test("a watcher that waits hears of what happens next", async () => {
  const chronicle = new AllSessionsFeed("wrk_1");
  const watch = chronicle.watch(started(new AbortController().signal));
  await next(watch);
  const heard = next(watch);
  await settled();
  chronicle.push("ses_a", [event(1)]);
  expect(await heard).toMatchObject({ cursor: "wrk_1.1", event: { seq: 1 } });
});

test("a watcher that is stopped hears nothing more of what is kept, and holds on to nothing", async () => {
  const chronicle = new AllSessionsFeed("wrk_1");
  const [stop, other] = [new AbortController(), new AbortController()];
  const [stopped, left] = [chronicle.watch(started(stop.signal)), chronicle.watch(started(other.signal))];
  await Promise.all([next(stopped), next(left)]);
  chronicle.push("ses_a", [event(1), event(2)]);
  expect(await next(stopped)).toMatchObject({ event: { seq: 1 } });
  stop.abort();
  expect(await stopped.next()).toMatchObject({ done: true });
  await left.return();
  expect(getEventListeners(other.signal, "abort")).toEqual([]);
});

test.each(["wrk_1.0", "wrk_1.2"])("a cursor at either end of what is kept has missed nothing: %s", async (after) => {
  const chronicle = new AllSessionsFeed("wrk_1");
  await next(chronicle.watch(started()));
  chronicle.push("ses_a", [event(1), event(2)]);
  expect(await next(chronicle.watch({ ...started(), after }))).toEqual({ type: "here", cursor: after });
});

test("G31: as much as may be kept is kept; one more, and the older half goes", async () => {
  const chronicle = new AllSessionsFeed("wrk_1");
  await next(chronicle.watch(started()));
  const many = Array.from({ length: CHRONICLE_EVENTS_MAX }, (_, index) => event(index + 1));
  chronicle.push("ses_a", many);
  expect(chronicle.kept).toBe(CHRONICLE_EVENTS_MAX);
  chronicle.push("ses_a", [event(1)]);
  expect(chronicle.kept).toBe(CHRONICLE_EVENTS_MAX / 2);
});

test("G31: the same by size", async () => {
  const chronicle = new AllSessionsFeed("wrk_1");
  await next(chronicle.watch(started()));
  const sized = (chars: number) => event(1, "x".repeat(chars - heapBytes(event(1)) / 2));
  chronicle.push("ses_a", [sized(CHRONICLE_CHARS_MAX / 2), sized(CHRONICLE_CHARS_MAX / 2)]);
  expect(chronicle.kept).toBe(2);
  chronicle.push("ses_a", [sized(1_000), sized(CHRONICLE_CHARS_MAX / 2 - 1_000)]);
  expect(chronicle.kept).toBe(2);
});

test("before anybody has asked nothing is kept", () => {
  const chronicle = new AllSessionsFeed("wrk_1");
  chronicle.push("ses_a", [event(1)]);
  expect(chronicle.kept).toBe(0);
});

test("a watcher that has left is given nothing more, also while it waits", async () => {
  const chronicle = new AllSessionsFeed("wrk_1");
  const stop = new AbortController();
  const watch = chronicle.watch(started(stop.signal));
  await next(watch);
  const waits = watch.next();
  await settled();
  stop.abort();
  // Recorded in the same tick: the watcher has left before it.
  chronicle.push("ses_a", [event(1)]);
  expect((await waits).done).toBe(true);
  expect(getEventListeners(stop.signal, "abort")).toEqual([]);

  const second = chronicle.watch(started());
  await next(second);
  const pending = second.next();
  await settled();
  await second.return();
  expect((await pending).done).toBe(true);
});
