import { describe, expect, test } from "vitest";
import { accept, running, setMode, settleTurn, start } from "../../test/fixtures/commands.ts";
import { logStore } from "../../test/fixtures/log-store.ts";
import type { Event, Recorded } from "../core/event.ts";
import { PAGE_EVENTS_MAX } from "../core/limits.ts";
import type { Run } from "../core/run.ts";
import { Book, type Message } from "../core/transcript.ts";
import type { Page, Store } from "../ports.ts";
import { Gate } from "../testing/gate.ts";
import { type Given, given } from "../testing/given.ts";
import { LiveTranscript } from "./live-transcript.ts";

const said = (seq: number, runId: `run_${string}`, text: string): Recorded => ({
  ...{ type: "run.accepted", runId, prompt: { text }, delivery: "queue", seq, at: 0 },
});
const started = (seq: number, runId: `run_${string}`): Recorded => ({ type: "run.started", runId, seq, at: 0 });

test("G17: a conversation of which the middle is removed while it is read begins behind what was removed", async () => {
  const pages: Page[] = [
    { events: [said(1, "run_a", "before"), started(2, "run_a")] },
    { events: [said(6, "run_b", "now"), started(7, "run_b")], gapTo: 5 },
  ];
  const read = (): Promise<Page> => Promise.resolve(pages.shift() ?? { events: [] });
  const store = { read } as Partial<Store> as Store;
  const lane = { id: "ses_1", durable: { head: 7 } } as const;
  const run = { id: "run_b", prompt: { text: "now" }, acceptedAt: 6 } as Partial<Run> as Run;
  const messages = await new LiveTranscript().read(store, lane, run);
  expect(messages).toMatchObject([{ role: "user", runId: "run_b", text: "now" }]);
});

describe("G17: the conversation that a turn is given", () => {
  /** What the log tells, read as a whole. */
  function told(events: readonly Event[]): readonly Message[] {
    const book = new Book();
    for (const event of events) book.note(event);
    return book.told();
  }
  const runOf = ({ lane }: Given): Run => lane.live ?? expect.fail("No run is live.");
  const first = given(...running("run_a"));
  const later = first.and(settleTurn("turn_a.1", { text: "done" }), ...running("run_b"));

  test.each<readonly [what: string, past: Given]>([
    ["the first turn of the first run", first],
    ["the first turn, with another prompt behind it", given(accept("run_a"), accept("run_b"), start)],
    ["the first turn, in a mode", given(setMode("ask"), ...running("run_a"))],
    ["a second turn", first.and(settleTurn("turn_a.1", { next: "turn", text: "on" }))],
    ["the first turn of a second run", later],
  ])("is that of the log: %s", async (_, past) => {
    const { store } = logStore(past.events);
    const live = new LiveTranscript();
    expect(await live.read(store, { id: "ses_1", durable: past.lane }, runOf(past))).toEqual(told(past.events));
    // And again, with nothing new; and when more was recorded.
    expect(await live.read(store, { id: "ses_1", durable: past.lane }, runOf(past))).toEqual(told(past.events));
    const next = past.and(settleTurn(past.lane.live?.turn ?? "turn_none.1", { next: "turn", text: "more" }));
    live.note(next.events.map((event, index): Recorded => ({ ...event, seq: index + 1, at: 0 })).slice(past.lane.head));
    expect(await live.read(store, { id: "ses_1", durable: next.lane }, runOf(next))).toEqual(told(next.events));
  });

  test("needs no reading in the first turn of all, and else each page once", async () => {
    const begun = logStore(first.events);
    await new LiveTranscript().read(begun.store, { id: "ses_1", durable: first.lane }, runOf(first));
    expect(begun.reads).toEqual([]);
    const said: Event = { type: "turn.extended", runId: "run_b", turnId: "turn_b.1", text: "x" };
    const events = [...later.events, ...Array.from({ length: PAGE_EVENTS_MAX }, () => said)];
    const { store, reads } = logStore(events);
    const durable = { head: events.length };
    const messages = await new LiveTranscript().read(store, { id: "ses_1", durable }, runOf(later));
    expect(messages).toEqual(told(events));
    expect(reads).toEqual([0, PAGE_EVENTS_MAX]);
  });

  test("is what there is if the log ends before its head", async () => {
    const { store } = logStore(later.events);
    const durable = { head: later.lane.head + 5 };
    const messages = await new LiveTranscript().read(store, { id: "ses_1", durable }, runOf(later));
    expect(messages).toEqual(told(later.events));
  });

  test.each([
    ["nothing", 0],
    ["the beginning", 2],
    ["all of it", later.lane.head],
  ])("has everything once if it is read twice at the same time, and %s is removed meanwhile", async (_, gapTo) => {
    const slow = new Gate();
    const whole = logStore(later.events).store;
    const removed = logStore(later.events, gapTo).store;
    const read: Store["read"] = async (...asked) => {
      await slow.opened;
      return removed.read(...asked);
    };
    const live = new LiveTranscript();
    const lane = { id: "ses_1", durable: later.lane } as const;
    const late = live.read({ ...whole, read }, lane, runOf(later));
    await live.read(whole, lane, runOf(later));
    slow.open();
    expect(await late).toEqual(told(later.events));
  });
});
