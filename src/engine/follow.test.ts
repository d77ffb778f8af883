// What a follower is given: every event once, in order, with what was said between them.
import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { watch } from "../../test/fixtures/commit.ts";
import type { Delta } from "../core/delta.ts";
import type { Recorded } from "../core/event.ts";
import type { Seq } from "../core/ids.ts";
import { PAGE_EVENTS_MAX, TAIL_EVENTS_MAX } from "../core/limits.ts";
import type { Store } from "../ports.ts";
import { settled } from "../testing/manual-clock.ts";
import { Feeds } from "./feed.ts";
import { type Following, followPages, type Heard } from "./follow.ts";

const event = (seq: Seq): Recorded => ({ type: "run.started", runId: "run_a", seq, at: 1 });
const turn = (seq: Seq, number: number): Recorded => ({
  ...({ type: "turn.requested", runId: "run_a", turnId: `turn_a.${number}` } as const),
  ...{ seq, at: 1 },
});
const ended = (seq: Seq, number: number): Recorded => ({
  ...({ type: "turn.settled", runId: "run_a", turnId: `turn_a.${number}` } as const),
  ...({ outcome: { kind: "completed" }, next: "end", text: "" } as const),
  ...{ seq, at: 1 },
});
const delta = (text: string, number = 1): Delta => ({
  ...({ type: "delta", runId: "run_a", turnId: `turn_a.${number}` } as const),
  ...{ text, from: 0 },
});

/** A log of one session that this worker drives, unless it is said otherwise, and somebody who follows it. */
function house(following: Partial<Following> = {}, log: Recorded[] = [], gapTo?: Seq) {
  const feeds = new Feeds();
  const grown: AbortSignal[] = [];
  const store = {
    read: async (_, { after, limit }) => ({
      events: log.filter(({ seq }) => seq > after).slice(0, limit),
      ...(gapTo === undefined || after > gapTo ? {} : { gapTo }),
    }),
    grown: (_, __, signal) => {
      grown.push(signal);
      return new Promise(() => {});
    },
  } as Partial<Store> as Store;
  const pages = followPages(store, feeds, "ses_a", {
    ...{ after: 0, signal: undefined, deltas: "with", drives: () => true, said: () => undefined },
    ...following,
  });
  const record = (...events: readonly Recorded[]): void => {
    log.push(...events);
    feeds.push("ses_a", events);
  };
  return { feeds, grown, pages, record };
}

async function next(pages: AsyncGenerator<readonly Heard[], void>): Promise<readonly Heard[]> {
  const page = await pages.next();
  if (page.done === true) throw new Error("The following has ended.");
  return page.value;
}

test("what was said between two events is told between them, also if all of it is told at once", async () => {
  const { feeds, pages, record } = house({}, [event(1)]);
  expect(await next(pages)).toEqual([event(1)]);
  const waits = next(pages);
  await settled();
  record(event(2));
  expect(await waits).toEqual([event(2)]);
  feeds.delta("ses_a", delta("one"), 2);
  record(event(3));
  feeds.delta("ses_a", delta("two"), 3);
  expect(await next(pages)).toEqual([delta("one"), event(3), delta("two")]);
});

test("whoever asks for events only hears no deltas, and never an empty page", async () => {
  const { feeds, pages, record } = house({ deltas: "without" }, [event(1)]);
  await next(pages);
  const waits = watch(pages.next());
  await settled();
  feeds.delta("ses_a", delta("one"), 1);
  await settled();
  expect(waits.is).toBe("waiting");
  record(event(2));
  await settled();
  expect(waits).toMatchObject({ is: "answered", value: { value: [event(2)] } });
});

test("what a turn said is not told after its end; what another says is", async () => {
  const { feeds, pages } = house({}, [turn(1, 1), ended(2, 1), turn(3, 2)]);
  const first = next(pages);
  feeds.delta("ses_a", delta("old", 1), 3);
  feeds.delta("ses_a", delta("new", 2), 3);
  expect(await first).toEqual([turn(1, 1), ended(2, 1), turn(3, 2)]);
  expect(await next(pages)).toEqual([delta("new", 2)]);
});

test("whoever joins in the middle of a turn first hears what it has said", async () => {
  const { pages } = house({ said: () => ({ delta: delta("so far"), at: 1 }) }, [event(1), event(2)]);
  expect(await next(pages)).toEqual([event(1), delta("so far"), event(2)]);
});

test("whoever is overtaken by more than is kept reads on in the store, and misses nothing", async () => {
  const { pages, record } = house({}, [event(1)]);
  await next(pages);
  const waits = next(pages);
  await settled();
  record(event(2));
  await waits;
  const more = Array.from({ length: TAIL_EVENTS_MAX + PAGE_EVENTS_MAX }, (_, index) => event(index + 3));
  record(...more);
  const heard = [...(await next(pages)), ...(await next(pages))];
  expect(heard).toEqual(more);
});

test("whoever must look into the store again does", async () => {
  const log = [event(1)];
  const { feeds, pages } = house({}, log);
  await next(pages);
  const waits = next(pages);
  await settled();
  // Recorded by somebody else.
  log.push(event(2));
  feeds.reset("ses_a");
  expect(await waits).toEqual([event(2)]);
});

test("events that are not kept any more are one gap; whoever stands behind it hears of none", async () => {
  const kept = [event(4), event(5)];
  const { pages } = house({ after: 1 }, [...kept], 3);
  expect([await next(pages), await next(pages)]).toEqual([[{ type: "gap", from: 2, to: 3 }], kept]);
  expect(await next(house({ after: 3 }, [...kept], 3).pages)).toEqual(kept);
});

test("while another worker drives, the store is asked, and not left waiting once something came first", async () => {
  const stop = new AbortController();
  const { feeds, grown, pages } = house({ drives: () => false, signal: stop.signal });
  const over = pages.next();
  await settled();
  feeds.reset("ses_a");
  await settled();
  expect(grown.map(({ aborted }) => aborted)).toEqual([true, false]);
  stop.abort();
  expect(await over).toEqual({ done: true, value: undefined });
  expect(grown.map(({ aborted }) => aborted)).toEqual([true, true]);
});

test("what was recorded before the end is told, also to whoever was busy meanwhile, without the store", async () => {
  const { feeds, pages, record } = house({}, [event(1)]);
  expect(await next(pages)).toEqual([event(1)]);
  record(event(2));
  feeds.delta("ses_a", delta("last words"), 2);
  feeds.closeAll();
  expect(await next(pages)).toEqual([event(2), delta("last words")]);
  expect((await pages.next()).done).toBe(true);
});

test("whoever has heard everything at the end is given no empty page", async () => {
  const { feeds, pages, record } = house({}, []);
  const first = next(pages);
  await settled();
  record(event(1));
  expect(await first).toEqual([event(1)]);
  feeds.closeAll();
  expect((await pages.next()).done).toBe(true);
});

test("whoever is too far behind at the end is told no later events than those that come next", async () => {
  const { feeds, pages, record } = house({}, [event(1)]);
  expect(await next(pages)).toEqual([event(1)]);
  record(...Array.from({ length: TAIL_EVENTS_MAX + 2 }, (_, index) => event(index + 2)));
  feeds.closeAll();
  expect((await pages.next()).done).toBe(true);
});

test("whoever has left hears nothing at the end", async () => {
  const stop = new AbortController();
  const { feeds, pages, record } = house({ signal: stop.signal }, [event(1)]);
  expect(await next(pages)).toEqual([event(1)]);
  record(event(2));
  feeds.delta("ses_a", delta("last words"), 2);
  stop.abort();
  feeds.closeAll();
  expect((await pages.next()).done).toBe(true);
});

test("whoever leaves holds on to nothing", async () => {
  const stop = new AbortController();
  const { feeds, pages } = house({ signal: stop.signal }, [event(1)]);
  await next(pages);
  expect(feeds.size).toBe(1);
  await pages.return();
  expect(feeds.size).toBe(0);
  expect(getEventListeners(stop.signal, "abort")).toEqual([]);
});
