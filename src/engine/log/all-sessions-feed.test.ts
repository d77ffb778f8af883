// The feed of all sessions of a server.
import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { ALL_SESSIONS_CHARS_MAX, ALL_SESSIONS_EVENTS_MAX } from "../../core/limits.ts";
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

test("a follower first gets its position, and then the events of every session, in order", {
  meta: { id: "G29/all-sessions-in-order" },
}, async () => {
  const allSessionsFeed = new AllSessionsFeed("wrk_1");
  const watch = allSessionsFeed.watch(started());
  const here = await next(watch);
  expect(here).toEqual({ type: "here", cursor: "wrk_1.0" });
  allSessionsFeed.push("ses_a", [event(1), event(2)]);
  allSessionsFeed.push("ses_b", [event(1)]);
  expect([await next(watch), await next(watch), await next(watch)]).toMatchObject([
    { cursor: "wrk_1.1", sessionId: "ses_a", event: { seq: 1 } },
    { cursor: "wrk_1.2", sessionId: "ses_a", event: { seq: 2 } },
    { cursor: "wrk_1.3", sessionId: "ses_b", event: { seq: 1 } },
  ]);
  const again = allSessionsFeed.watch({ after: "wrk_1.2", prefix: "ses_", signal: undefined });
  expect([await next(again), await next(again)]).toMatchObject([
    { type: "here", cursor: "wrk_1.2" },
    { cursor: "wrk_1.3" },
  ]);
});

test("G35: a follower of one tenant gets no events of another tenant", {
  meta: { id: "G35/watcher-sees-own-tenant-only" },
}, async () => {
  const allSessionsFeed = new AllSessionsFeed("wrk_1");
  const watch = allSessionsFeed.watch({ after: undefined, prefix: "ses_acme.", signal: undefined });
  await next(watch);
  allSessionsFeed.push("ses_other.1", [event(1)]);
  allSessionsFeed.push("ses_acmeplus.1", [event(1)]);
  allSessionsFeed.push("ses_acme.1", [event(7)]);
  expect(await next(watch)).toMatchObject({ sessionId: "ses_acme.1", event: { seq: 7 } });
});

test.each(["wrk_0.1", "wrk_1.99", "wrk_1.-1", "wrk_1.x", "", ".", "wrk_1.1e3"])(
  "G30: a cursor that is unknown here gets `missed`: %j",
  { meta: { id: "G30/meaningless-cursor-reports-gap" } },
  async (after) => {
    const allSessionsFeed = new AllSessionsFeed("wrk_1");
    await next(allSessionsFeed.watch(started()));
    allSessionsFeed.push("ses_a", [event(1)]);
    const watch = allSessionsFeed.watch({ after, prefix: "ses_", signal: undefined });
    expect(await next(watch)).toEqual({ type: "missed", cursor: "wrk_1.1" });
    allSessionsFeed.push("ses_a", [event(2)]);
    expect(await next(watch)).toMatchObject({ event: { seq: 2 } });
  },
);

test("G31: a follower that does not read gets one `missed`; what is kept is bounded", async () => {
  const allSessionsFeed = new AllSessionsFeed("wrk_1");
  const watch = allSessionsFeed.watch(started());
  await next(watch);
  for (let seq = 1; seq <= 3 * ALL_SESSIONS_EVENTS_MAX; seq += 1) allSessionsFeed.push("ses_a", [event(seq)]);
  expect(allSessionsFeed.kept).toBeLessThanOrEqual(ALL_SESSIONS_EVENTS_MAX);
  expect(await next(watch)).toEqual({ type: "missed", cursor: `wrk_1.${3 * ALL_SESSIONS_EVENTS_MAX}` });
  allSessionsFeed.push("ses_a", [event(7)]);
  expect(await next(watch)).toMatchObject({ event: { seq: 7 } });
  const long = "x".repeat(ALL_SESSIONS_CHARS_MAX / 4);
  for (let seq = 1; seq <= 20; seq += 1) allSessionsFeed.push("ses_a", [event(seq, long)]);
  expect(allSessionsFeed.kept).toBeLessThanOrEqual(4);
});

test("an event larger than the limit is not sent, and followers get `missed`", async () => {
  const allSessionsFeed = new AllSessionsFeed("wrk_1");
  const watch = allSessionsFeed.watch(started());
  await next(watch);
  allSessionsFeed.push("ses_a", [event(1, "x".repeat(ALL_SESSIONS_CHARS_MAX + 1))]);
  expect(await next(watch)).toEqual({ type: "missed", cursor: "wrk_1.1" });
});

test("a follower ends with its signal and at shutdown, even while it waits", async () => {
  const allSessionsFeed = new AllSessionsFeed("wrk_1");
  const stop = new AbortController();
  const one = allSessionsFeed.watch(started(stop.signal));
  const other = allSessionsFeed.watch(started());
  await Promise.all([next(one), next(other)]);
  const ends = [one.next(), other.next()];
  stop.abort();
  expect(await ends[0]).toMatchObject({ done: true });
  allSessionsFeed.close();
  expect(await ends[1]).toMatchObject({ done: true });
});

test("a waiting follower gets the next event", async () => {
  const allSessionsFeed = new AllSessionsFeed("wrk_1");
  const watch = allSessionsFeed.watch(started(new AbortController().signal));
  await next(watch);
  const heard = next(watch);
  await settled();
  allSessionsFeed.push("ses_a", [event(1)]);
  expect(await heard).toMatchObject({ cursor: "wrk_1.1", event: { seq: 1 } });
});

test("a follower that is stopped gets no more events, and holds nothing", async () => {
  const allSessionsFeed = new AllSessionsFeed("wrk_1");
  const [stop, other] = [new AbortController(), new AbortController()];
  const [stopped, left] = [allSessionsFeed.watch(started(stop.signal)), allSessionsFeed.watch(started(other.signal))];
  await Promise.all([next(stopped), next(left)]);
  allSessionsFeed.push("ses_a", [event(1), event(2)]);
  expect(await next(stopped)).toMatchObject({ event: { seq: 1 } });
  stop.abort();
  expect(await stopped.next()).toMatchObject({ done: true });
  await left.return();
  expect(getEventListeners(other.signal, "abort")).toEqual([]);
});

test.each(["wrk_1.0", "wrk_1.2"])("a cursor at either end of what is kept has missed nothing: %s", async (after) => {
  const allSessionsFeed = new AllSessionsFeed("wrk_1");
  await next(allSessionsFeed.watch(started()));
  allSessionsFeed.push("ses_a", [event(1), event(2)]);
  expect(await next(allSessionsFeed.watch({ ...started(), after }))).toEqual({ type: "here", cursor: after });
});

test("G31: events up to the limit are kept; with one more, the older half is dropped", async () => {
  const allSessionsFeed = new AllSessionsFeed("wrk_1");
  await next(allSessionsFeed.watch(started()));
  const many = Array.from({ length: ALL_SESSIONS_EVENTS_MAX }, (_, index) => event(index + 1));
  allSessionsFeed.push("ses_a", many);
  expect(allSessionsFeed.kept).toBe(ALL_SESSIONS_EVENTS_MAX);
  allSessionsFeed.push("ses_a", [event(1)]);
  expect(allSessionsFeed.kept).toBe(ALL_SESSIONS_EVENTS_MAX / 2);
});

test("G31: the same for the limit in size", async () => {
  const allSessionsFeed = new AllSessionsFeed("wrk_1");
  await next(allSessionsFeed.watch(started()));
  const sized = (chars: number) => event(1, "x".repeat(chars - heapBytes(event(1)) / 2));
  allSessionsFeed.push("ses_a", [sized(ALL_SESSIONS_CHARS_MAX / 2), sized(ALL_SESSIONS_CHARS_MAX / 2)]);
  expect(allSessionsFeed.kept).toBe(2);
  allSessionsFeed.push("ses_a", [sized(1_000), sized(ALL_SESSIONS_CHARS_MAX / 2 - 1_000)]);
  expect(allSessionsFeed.kept).toBe(2);
});

test("nothing is kept before the first follower", () => {
  const allSessionsFeed = new AllSessionsFeed("wrk_1");
  allSessionsFeed.push("ses_a", [event(1)]);
  expect(allSessionsFeed.kept).toBe(0);
});

test("a follower that has left gets nothing more, even while it waits", async () => {
  const allSessionsFeed = new AllSessionsFeed("wrk_1");
  const stop = new AbortController();
  const watch = allSessionsFeed.watch(started(stop.signal));
  await next(watch);
  const waits = watch.next();
  await settled();
  stop.abort();
  // Recorded in the same tick: the follower has left before it.
  allSessionsFeed.push("ses_a", [event(1)]);
  expect((await waits).done).toBe(true);
  expect(getEventListeners(stop.signal, "abort")).toEqual([]);

  const second = allSessionsFeed.watch(started());
  await next(second);
  const pending = second.next();
  await settled();
  await second.return();
  expect((await pending).done).toBe(true);
});
