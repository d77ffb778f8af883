// The live end of a session: what it keeps for followers is bounded, whatever they do.
import { expect, test } from "vitest";
import { openHouse } from "../../test/open-house.ts";
import type { Delta } from "../core/delta.ts";
import type { Recorded } from "../core/event.ts";
import { DELTA_BYTES_MAX, TAIL_EVENTS_MAX } from "../core/limits.ts";
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
  for (let seq = 1; seq <= 3 * TAIL_EVENTS_MAX; seq += 1) feeds.push("ses_a", [event(seq)]);
  expect(feed.after(0)).toBeUndefined();
  expect(feed.after(2 * TAIL_EVENTS_MAX)).toHaveLength(TAIL_EVENTS_MAX);
  expect(feed.after(3 * TAIL_EVENTS_MAX)).toEqual([]);
});

test("a session that nobody follows any more keeps nothing", () => {
  const feeds = new Feeds();
  feeds.open("ses_a");
  feeds.push("ses_a", [event(1)]);
  feeds.close("ses_a");
  expect(feeds.open("ses_a").after(0)).toEqual([]);
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
