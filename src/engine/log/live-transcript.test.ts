import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { accept, cancelRun, compact, running, setMode, settleTurn, start } from "../../../test/fixtures/commands.ts";
import { logStore } from "../../../test/fixtures/log-store.ts";
import { CONTEXT_KEPT_BYTES, PAGE_EVENTS_MAX } from "../../core/limits.ts";
import type { Command } from "../../core/model/command.ts";
import type { Event, Recorded } from "../../core/model/event.ts";
import type { Run } from "../../core/model/run.ts";
import type { Message } from "../../core/read/transcript.ts";
import { Book } from "../../core/read/transcript-builder.ts";
import type { Page, Store } from "../../ports/store.ts";
import { Gate } from "../../testing/gate.ts";
import { type Given, given } from "../../testing/given.ts";
import { LiveTranscript } from "./live-transcript.ts";

const said = (seq: number, runId: `run_${string}`, text: string): Recorded => ({
  ...{ type: "run.accepted", runId, prompt: { text }, delivery: "queue", seq, at: 0 },
});
const started = (seq: number, runId: `run_${string}`): Recorded => ({ type: "run.started", runId, seq, at: 0 });

test("G17: a conversation whose middle is removed while it is read begins after the removed part", async () => {
  const pages: Page[] = [
    { events: [said(1, "run_a", "before"), started(2, "run_a")] },
    { events: [said(6, "run_b", "now"), started(7, "run_b")], gapTo: 5 },
  ];
  const read = (): Promise<Page> => Promise.resolve(pages.shift() ?? { events: [] });
  const store = { read } as Partial<Store> as Store;
  const lane = { id: "ses_1", durable: { head: 7, contextFrom: 1 } } as const;
  const run = { id: "run_b", prompt: { text: "now" }, acceptedAt: 6 } as Partial<Run> as Run;
  const messages = await new LiveTranscript().read(store, lane, run);
  const note = { kind: "reminder", text: expect.stringMatching(/^Earlier messages .* were removed/) };
  expect(messages).toMatchObject([
    { role: "note", item: note },
    { role: "user", runId: "run_b", text: "now" },
  ]);
});

describe("G17: the conversation that a turn receives", () => {
  /** The transcript of the whole log. */
  function told(events: readonly Event[]): readonly Message[] {
    const book = new Book("model");
    for (const event of events) book.note(event);
    return book.messages();
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

  test("needs no read in the first turn of a session, otherwise one read per page", async () => {
    const begun = logStore(first.events);
    await new LiveTranscript().read(begun.store, { id: "ses_1", durable: first.lane }, runOf(first));
    expect(begun.reads).toEqual([]);
    const said: Event = { type: "turn.extended", runId: "run_b", turnId: "turn_b.1", text: "x" };
    const events = [...later.events, ...Array.from({ length: PAGE_EVENTS_MAX }, () => said)];
    const { store, reads } = logStore(events);
    const durable = { head: events.length, contextFrom: 1 };
    const messages = await new LiveTranscript().read(store, { id: "ses_1", durable }, runOf(later));
    expect(messages).toEqual(told(events));
    expect(reads).toEqual([0, PAGE_EVENTS_MAX]);
  });

  test("ends with the log if that ends before its head", async () => {
    const { store } = logStore(later.events);
    const durable = { ...later.lane, head: later.lane.head + 5 };
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

  describe("after a summary", () => {
    const runs = (from: number, to: number): readonly Command[] =>
      Array.from({ length: to - from }, (_, index) => index + from).flatMap((n) => [
        ...running(`run_${n}`),
        settleTurn(`turn_${n}.1`, { text: "done" }),
      ]);

    test("is read from the run that made it, however many runs there were before", async () => {
      const reads: number[] = [];
      for (const before of [3, 300]) {
        const past = given(
          ...runs(0, before),
          ...running("run_a"),
          compact("turn_a.1"),
          settleTurn("turn_a.1"),
          ...running("run_b"),
        );
        const log = logStore(past.events);
        const messages = await new LiveTranscript().read(log.store, { id: "ses_1", durable: past.lane }, runOf(past));
        expect(messages.map(({ role, runId }) => `${role} ${runId}`)).toEqual([
          ...["user run_a", "summary run_a", "assistant run_a", "user run_b", "assistant run_b"],
        ]);
        expect(messages).toEqual(told(past.events));
        reads.push(log.reads.length);
        expect(past.lane.head - (log.reads[0] ?? 0)).toBeLessThan(12);
      }
      expect(reads).toEqual([1, 1]);
    });

    test("has the prompts that were waiting when it was made", async () => {
      const past = given(...runs(0, 3), accept("run_a"), accept("run_b"), accept("run_c"), start).and(
        ...[compact("turn_a.1"), settleTurn("turn_a.1"), start, settleTurn("turn_b.1"), start],
      );
      const { store } = logStore(past.events);
      const messages = await new LiveTranscript().read(store, { id: "ses_1", durable: past.lane }, runOf(past));
      expect(messages).toEqual(told(past.events));
      expect(messages.flatMap((one) => (one.role === "user" ? [one.runId] : []))).toEqual(["run_a", "run_b", "run_c"]);
    });

    test("keeps nothing from before, and is small enough to be kept again", () => {
      const live = new LiveTranscript();
      const large = given(...running("run_a"), settleTurn("turn_a.1", { text: "x".repeat(CONTEXT_KEPT_BYTES) }));
      const past = large.and(...running("run_b"), compact("turn_b.1"));
      const recorded = past.events.map((event, index): Recorded => ({ ...event, seq: index + 1, at: 0 }));
      live.note(recorded.slice(0, large.events.length));
      expect(live.isLarge).toBe(true);
      live.note(recorded.slice(large.events.length));
      expect(live.isLarge).toBe(false);
    });
  });

  test("is the same from the position of the lane as from the beginning, whatever happened", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(9), { maxLength: 60 }), async (choices) => {
        const past = choices.reduce(step, given(accept("run_0"), start));
        const run = past.lane.live;
        if (run === undefined) return;
        const { store } = logStore(past.events);
        const messages = await new LiveTranscript().read(store, { id: "ses_1", durable: past.lane }, run);
        expect(messages).toEqual(told(past.events));
      }),
      { numRuns: 300 },
    );
  });
});

/** One more step: prompts, steers, summaries, stops, ends of turns. */
function step(past: Given, choice: number, index: number): Given {
  const { live, queue } = past.lane;
  const next = `run_${index + 1}` as const;
  if (live === undefined) return queue.length > 0 ? past.and(start) : past.and(accept(next));
  const turn = live.turn ?? "turn_none.1";
  const steps: readonly Command[] = [
    accept(next),
    accept(next, { delivery: "steer" }),
    accept(next, { delivery: "interrupt" }),
    { type: "take", turnId: turn },
    compact(turn),
    { type: "extend", turnId: turn, text: `said ${index}. ` },
    settleTurn(turn, { next: "turn" }),
    settleTurn(turn),
    cancelRun(queue[0]?.id ?? live.id),
    { type: "move", runId: queue.at(-1)?.id ?? live.id, to: "front" },
  ];
  try {
    return past.and(steps[choice] ?? start);
  } catch {
    // No effect in this state.
    return past;
  }
}
