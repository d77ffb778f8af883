// The live end of a session: what it keeps for followers is bounded, whatever they do.
import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { openHouse } from "../../test/fixtures/belay.ts";
import { watch } from "../../test/fixtures/commit.ts";
import type { Delta } from "../core/delta.ts";
import type { Recorded } from "../core/event.ts";
import { DELTA_BYTES_MAX, TAIL_EVENTS_MAX } from "../core/limits.ts";
import { settled } from "../testing/manual-clock.ts";
import { Ear, Feeds } from "./feed.ts";

const delta = (text: string, turn = 1): Delta => ({
  ...({ type: "delta", runId: "run_a", turnId: `turn_a.${turn}` } as const),
  ...{ text, from: 0 },
});
const event = (seq: number): Recorded => ({ type: "run.started", runId: "run_a", seq, at: 1 });

test("G31: a follower that does not read keeps the latest deltas within its limit, and counts the rest", () => {
  const ear = new Ear();
  const piece = "x".repeat(1024);
  const heard = 10 * (DELTA_BYTES_MAX / (piece.length * 2));
  for (let index = 0; index < heard; index += 1) ear.hear(delta(piece), 1);
  ear.hear(delta("last"), 1);
  const kept = ear.take();
  expect(kept.reduce((bytes, one) => bytes + textOf(one).length * 2, 0)).toBeLessThanOrEqual(DELTA_BYTES_MAX);
  expect(kept.length + ear.dropped).toBe(heard + 1);
  expect(kept.map(textOf).at(-1)).toBe("last");
  expect(ear.take()).toEqual([]);
});

test("G31: a single piece larger than the limit is dropped, not kept", () => {
  const ear = new Ear();
  ear.hear(delta("x".repeat(DELTA_BYTES_MAX)), 1);
  expect(ear.take()).toEqual([]);
  expect(ear.dropped).toBe(1);
});

test("G31: what has been taken or forgotten makes room; what is left still counts", () => {
  const ear = new Ear();
  const half = (turn: number) => delta(String(turn).repeat(DELTA_BYTES_MAX / 4), turn);
  ear.hear(half(1), 1);
  ear.hear(half(2), 2);
  expect(ear.take(2)).toEqual([half(1)]);
  ear.hear(half(3), 2);
  expect(ear.dropped).toBe(0);
  ear.hear(half(4), 2);
  expect(ear.dropped).toBe(1);
  ear.forget("turn_a.3");
  ear.hear(half(5), 2);
  expect(ear.take()).toEqual([half(4), half(5)]);
  expect(ear.dropped).toBe(1);
});

test("what a turn said that is in the log by now is not said again; other turns' words are", () => {
  const ear = new Ear();
  ear.hear(delta("old", 1), 1);
  ear.hear(delta("new", 2), 1);
  ear.forget("turn_a.1");
  expect(ear.take()).toEqual([delta("new", 2)]);
});

test("a delta stands between the events between which it was said", () => {
  const ear = new Ear();
  ear.hear(delta("first"), 4);
  ear.hear(delta("second"), 5);
  expect(ear.take(4)).toEqual([]);
  expect(ear.take(5)).toEqual([delta("first")]);
  expect(ear.take()).toEqual([delta("second")]);
});

test("whoever follows a run from its prompt on hears every delta, in its place, however fast the run is", async () => {
  const { belay } = await openHouse({
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

test("G31: the tail kept for all followers together is bounded; who stands before it is sent to the store", () => {
  const feeds = new Feeds();
  const feed = feeds.open("ses_a");
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

test("followers of one session share what is kept, and one that leaves takes nothing from the other", () => {
  const feeds = new Feeds();
  const [first, second] = [feeds.open("ses_a"), feeds.open("ses_a")];
  feeds.push("ses_a", [event(1)]);
  expect([first.after(0), second.after(0)]).toEqual([[event(1)], [event(1)]]);
  feeds.close("ses_a");
  feeds.push("ses_a", [event(2)]);
  expect(second.after(0)).toEqual([event(1), event(2)]);
});

test("a session that nobody follows any more keeps nothing", {
  meta: { id: "G33/unfollowed-session-keeps-nothing" },
}, () => {
  const feeds = new Feeds();
  feeds.open("ses_a");
  feeds.push("ses_a", [event(1)]);
  expect(feeds.size).toBe(1);
  feeds.close("ses_a");
  feeds.close("ses_a");
  expect(feeds.size).toBe(0);
  expect(feeds.open("ses_a").after(0)).toEqual([]);
});

test("whoever must look into the store is woken, and finds nothing here", async () => {
  const feeds = new Feeds();
  const feed = feeds.open("ses_a");
  feeds.push("ses_a", [event(1)]);
  const woken = feed.sleeper(undefined).woken();
  feeds.reset("ses_a");
  await woken;
  expect([feed.resets, feed.after(0), feed.covers(0)]).toEqual([1, [], false]);
});

test("whoever waits is woken by what happens, by what is said to those who listen, and by its signal", async () => {
  const feeds = new Feeds();
  const feed = feeds.open("ses_a");
  const stop = new AbortController();
  const sleeper = feed.sleeper(stop.signal);
  const deaf = watch(sleeper.woken());
  feeds.delta("ses_a", delta("nobody listens"), 1);
  await settled();
  expect(deaf.is).toBe("waiting");
  feeds.push("ses_a", [event(1)]);
  await settled();
  expect(deaf.is).toBe("answered");
  const ear = new Ear();
  const stopListening = feed.listen(ear);
  const said = sleeper.woken();
  feeds.delta("ses_a", delta("heard"), 1);
  await said;
  stopListening();
  feeds.delta("ses_a", delta("not heard"), 1);
  expect(ear.take()).toEqual([delta("heard")]);
  const aborted = sleeper.woken();
  stop.abort();
  await aborted;
  await sleeper.woken();
});

test("whoever has left is woken by nobody, and holds on to nothing", async () => {
  const feed = new Feeds().open("ses_a");
  const stop = new AbortController();
  const sleeper = feed.sleeper(stop.signal);
  sleeper.leave();
  const asleep = watch(sleeper.woken());
  feed.wake();
  await settled();
  expect(asleep.is).toBe("waiting");
  expect(getEventListeners(stop.signal, "abort")).toEqual([]);
});

test("G31: followers that stopped reading delay neither the run nor those who read", async () => {
  const { belay } = await openHouse({
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
  // Whoever wakes up later has missed no event.
  for (const sleeper of sleepers) {
    const late: number[] = [];
    for await (const one of sleeper) {
      if ("seq" in one) late.push(one.seq);
      if (late.at(-1) === 6) break;
    }
    expect(late).toEqual([2, 3, 4, 5, 6]);
  }
});

const textOf = (one: Delta): string => (one.type === "delta" ? one.text : "");
