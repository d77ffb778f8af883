// The feed of a session: what it keeps for followers is bounded, whatever they do.
import { expect, test } from "vitest";
import { arrayWork } from "../../../test/fixtures/array-work.ts";
import { openTestBelay } from "../../../test/fixtures/belay.ts";
import { watch } from "../../../test/fixtures/commit.ts";
import { TAIL_BYTES_MAX, TAIL_EVENTS_MAX } from "../../core/limits.ts";
import type { Delta } from "../../core/model/delta.ts";
import type { Recorded } from "../../core/model/event.ts";
import { settled } from "../../testing/manual-clock.ts";
import { Feeds } from "./feed.ts";

const delta = (text: string, turn = 1): Delta => ({
  ...({ type: "delta", runId: "run_a", turnId: `turn_a.${turn}` } as const),
  ...{ text, from: 0 },
});
const event = (seq: number, text = ""): Recorded => ({
  ...({ type: "turn.extended", runId: "run_a", turnId: "turn_a.1" } as const),
  ...{ text, seq, at: 1 },
});

test("a follower from the prompt on gets every delta, in its place, however fast the run is", async () => {
  const { belay } = await openTestBelay({
    talk: (turn) => {
      turn.emit("Hel");
      turn.emit("lo");
      return undefined;
    },
  });
  const session = await belay.createSession();
  const heard: string[] = [];
  for await (const one of session.prompt("talk")) heard.push(one.type === "delta" ? one.text : one.type);
  const before = ["run.accepted", "run.started", "turn.requested"];
  expect(heard).toEqual([...before, "Hel", "lo", "turn.settled", "run.settled"]);
});

test("G31: the tail that all followers share is bounded; a follower before it must read the store", () => {
  const feeds = new Feeds();
  const { feed } = feeds.subscribe("ses_a", "without");
  const last = 3 * TAIL_EVENTS_MAX + 7;
  for (let seq = 1; seq <= last; seq += 1) feeds.push("ses_a", [event(seq)]);
  expect(feed.after(0)).toBeUndefined();
  expect(feed.after(last - TAIL_EVENTS_MAX - 1)).toBeUndefined();
  expect(feed.after(last - TAIL_EVENTS_MAX)).toHaveLength(TAIL_EVENTS_MAX);
  expect(feed.after(last)).toEqual([]);
  expect([last - TAIL_EVENTS_MAX - 1, last - TAIL_EVENTS_MAX, last].map((at) => feed.covers(at))).toEqual([
    ...[false, true, true],
  ]);
});

test("G31: the tail is bounded in bytes, and an event that is too large for it must be read from the store", () => {
  const feeds = new Feeds();
  const { feed } = feeds.subscribe("ses_a", "without");
  for (let seq = 1; seq <= 100; seq += 1) feeds.push("ses_a", [event(seq, "x".repeat(20_000))]);
  const kept = feed.after(100 - (TAIL_BYTES_MAX >> 16)) ?? [];
  expect(kept.map(({ seq }) => seq)).toEqual([97, 98, 99, 100]);
  expect(feed.after(80)).toBeUndefined();
  feeds.push("ses_a", [event(101, "x".repeat(TAIL_BYTES_MAX))]);
  expect([feed.after(100), feed.covers(100)]).toEqual([undefined, false]);
  expect([feed.after(101), feed.covers(101)]).toEqual([[], true]);
  feeds.push("ses_a", [event(102)]);
  expect(feed.after(101)).toEqual([event(102)]);
});

test("G31: an event costs constant time, however much is kept", () => {
  const feeds = new Feeds();
  feeds.subscribe("ses_a", "without");
  const events = 10_000;
  const work = arrayWork(() => {
    for (let seq = 1; seq <= events; seq += 1) feeds.push("ses_a", [event(seq)]);
  });
  expect(work).toBeLessThan(4 * events);
});

test("a batch of very many events is accepted", () => {
  const feeds = new Feeds();
  const { feed } = feeds.subscribe("ses_a", "without");
  feeds.push(
    "ses_a",
    Array.from({ length: 200_000 }, (_, index) => event(index + 1)),
  );
  expect(feed.after(199_999)).toEqual([event(200_000)]);
});

test("followers of one session share the tail, and one that leaves does not affect the others", () => {
  const feeds = new Feeds();
  const [first, second] = [feeds.subscribe("ses_a", "without"), feeds.subscribe("ses_a", "without")];
  feeds.push("ses_a", [event(1)]);
  expect([first.feed.after(0), second.feed.after(0)]).toEqual([[event(1)], [event(1)]]);
  feeds.unsubscribe("ses_a", first);
  feeds.unsubscribe("ses_a", first);
  feeds.push("ses_a", [event(2)]);
  expect(second.feed.after(0)).toEqual([event(1), event(2)]);
});

test("a session without followers keeps nothing", {
  meta: { id: "G33/unfollowed-session-keeps-nothing" },
}, () => {
  const feeds = new Feeds();
  const old = feeds.subscribe("ses_a", "without");
  feeds.push("ses_a", [event(1)]);
  expect(feeds.size).toBe(1);
  feeds.unsubscribe("ses_a", old);
  expect(feeds.size).toBe(0);
  expect(feeds.subscribe("ses_a", "without").feed.after(0)).toEqual([]);
  // The one that left before is not part of the new feed.
  feeds.unsubscribe("ses_a", old);
  expect(feeds.size).toBe(1);
});

test("a follower that must read the store is woken, and the feed is empty", async () => {
  const feeds = new Feeds();
  const subscriber = feeds.subscribe("ses_a", "without");
  const { feed } = subscriber;
  feeds.push("ses_a", [event(1)]);
  const woken = subscriber.woken();
  feeds.reset("ses_a");
  await woken;
  expect([feed.resets, feed.after(0), feed.covers(0)]).toEqual([1, [], false]);
});

test("a waiting follower is woken by events, by deltas if it wants them, and by its own end", async () => {
  const feeds = new Feeds();
  const without = feeds.subscribe("ses_a", "without");
  const waits = watch(without.woken());
  feeds.delta("ses_a", delta("not wanted"), 1);
  await settled();
  expect(waits.is).toBe("waiting");
  feeds.push("ses_a", [event(1)]);
  await settled();
  expect(waits.is).toBe("answered");
  const subscriber = feeds.subscribe("ses_a", "with");
  const said = subscriber.woken();
  feeds.delta("ses_a", delta("wanted"), 1);
  await said;
  const left = subscriber.woken();
  feeds.unsubscribe("ses_a", subscriber);
  await left;
  feeds.delta("ses_a", delta("too late"), 1);
  expect(subscriber.deltas?.take()).toEqual([delta("wanted")]);
});

test("a follower that has left is not woken any more", async () => {
  const feeds = new Feeds();
  const [subscriber] = [feeds.subscribe("ses_a", "with"), feeds.subscribe("ses_a", "with")];
  feeds.unsubscribe("ses_a", subscriber);
  const waits = watch(subscriber.woken());
  feeds.push("ses_a", [event(1)]);
  await settled();
  expect(waits.is).toBe("waiting");
});

test("G31: followers that stopped reading delay neither the run nor other followers", async () => {
  const { belay } = await openTestBelay({
    flood: (turn) => {
      for (let index = 0; index < 500; index += 1) turn.emit("y".repeat(1024));
      return "end";
    },
  });
  const session = await belay.createSession();
  const sleepers = Array.from({ length: 20 }, () => session.events({ deltas: "with" }));
  for (const sleeper of sleepers) await sleeper.next();
  const run = session.prompt("flood");
  const seen: number[] = [];
  for await (const one of run) if ("seq" in one) seen.push(one.seq);
  expect(seen).toEqual([2, 3, 4, 5, 6]);
  // A follower that wakes up later has missed no event.
  for (const sleeper of sleepers) {
    const late: number[] = [];
    for await (const one of sleeper) {
      if ("seq" in one) late.push(one.seq);
      if (late.at(-1) === 6) break;
    }
    expect(late).toEqual([2, 3, 4, 5, 6]);
  }
});
