// What a follower receives: every event once, in order, with the deltas between them.
import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { watch } from "../../../test/fixtures/commit.ts";
import { PAGE_EVENTS_MAX, TAIL_EVENTS_MAX } from "../../core/limits.ts";
import type { Delta } from "../../core/model/delta.ts";
import type { Event, Recorded } from "../../core/model/event.ts";
import type { Seq } from "../../core/model/ids.ts";
import { heapBytes } from "../../core/size.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Store } from "../../ports/store.ts";
import { MemoryStore } from "../../store/memory/memory-store.ts";
import { settled } from "../../testing/manual-clock.ts";
import { Feeds } from "./feed.ts";
import { type FollowItem, type Following, followPages } from "./follow.ts";
import { pagedItems } from "./paged-items.ts";

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

/** A log of one session that this worker drives, unless stated otherwise, and a follower. */
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
  const pages = followPages(store, feeds, "ses_a", () => ({
    ...{ after: 0, signal: undefined, deltas: "with", drives: () => true, outputSoFar: () => undefined },
    ...following,
  }));
  const record = (...events: readonly Recorded[]): void => {
    log.push(...events);
    feeds.push("ses_a", events);
  };
  return { feeds, grown, pages, record };
}

async function next(pages: AsyncGenerator<readonly FollowItem[], void>): Promise<readonly FollowItem[]> {
  const page = await pages.next();
  if (page.done === true) throw new Error("The following has ended.");
  return page.value;
}

test("deltas between two events come between them, even if all arrive at once", async () => {
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

test("a follower without deltas gets no deltas, and never an empty page", async () => {
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

test("deltas of a turn do not come after its end; those of another turn do", async () => {
  const { feeds, pages } = house({}, [turn(1, 1), ended(2, 1), turn(3, 2)]);
  const first = next(pages);
  feeds.delta("ses_a", delta("old", 1), 3);
  feeds.delta("ses_a", delta("new", 2), 3);
  expect(await first).toEqual([turn(1, 1), ended(2, 1), turn(3, 2)]);
  expect(await next(pages)).toEqual([delta("new", 2)]);
});

test("a follower that joins during a turn first gets its text so far", async () => {
  const { pages } = house({ outputSoFar: () => ({ delta: delta("so far"), at: 1 }) }, [event(1), event(2)]);
  expect(await next(pages)).toEqual([event(1), delta("so far"), event(2)]);
});

test("a follower that falls behind the tail reads the store, and misses nothing", async () => {
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

test("a follower that must read the store again does so", async () => {
  const log = [event(1)];
  const { feeds, pages } = house({}, log);
  await next(pages);
  const waits = next(pages);
  await settled();
  // Recorded by another worker.
  log.push(event(2));
  feeds.reset("ses_a");
  expect(await waits).toEqual([event(2)]);
});

test("removed events are one gap; a follower after it gets none", async () => {
  const kept = [event(4), event(5)];
  const { pages } = house({ after: 1 }, [...kept], 3);
  expect([await next(pages), await next(pages)]).toEqual([[{ type: "gap", from: 2, to: 3 }], kept]);
  expect(await next(house({ after: 3 }, [...kept], 3).pages)).toEqual(kept);
});

test("while another worker drives, the store is awaited, and not left pending after another wakeup", async () => {
  const stop = new AbortController();
  const { feeds, grown, pages } = house({ drives: () => false, signal: stop.signal });
  const over = pages.next();
  await settled();
  feeds.reset("ses_a");
  await settled();
  expect(grown.map(({ aborted }) => aborted)).toEqual([true, false]);
  stop.abort();
  expect(await over).toEqual({ done: true, value: undefined });
  await settled();
  expect(grown.map(({ aborted }) => aborted)).toEqual([true, true]);
});

test("events recorded before the end are received, even by a busy follower, without the store", async () => {
  const { feeds, pages, record } = house({}, [event(1)]);
  expect(await next(pages)).toEqual([event(1)]);
  record(event(2));
  feeds.delta("ses_a", delta("last words"), 2);
  feeds.closeAll();
  expect(await next(pages)).toEqual([event(2), delta("last words")]);
  expect((await pages.next()).done).toBe(true);
});

test("a follower that has received everything at the end gets no empty page", async () => {
  const { feeds, pages, record } = house({}, []);
  const first = next(pages);
  await settled();
  record(event(1));
  expect(await first).toEqual([event(1)]);
  feeds.closeAll();
  expect((await pages.next()).done).toBe(true);
});

test("a follower that is too far behind at the end gets no events with a gap before them", async () => {
  const { feeds, pages, record } = house({}, [event(1)]);
  expect(await next(pages)).toEqual([event(1)]);
  record(...Array.from({ length: TAIL_EVENTS_MAX + 2 }, (_, index) => event(index + 2)));
  feeds.closeAll();
  expect((await pages.next()).done).toBe(true);
});

test("a follower that has left receives nothing at the end", async () => {
  const stop = new AbortController();
  const { feeds, pages, record } = house({ signal: stop.signal }, [event(1)]);
  expect(await next(pages)).toEqual([event(1)]);
  record(event(2));
  feeds.delta("ses_a", delta("last words"), 2);
  stop.abort();
  feeds.closeAll();
  expect((await pages.next()).done).toBe(true);
});

describe("G31: a follower of large events holds at most 1 MiB", () => {
  const large = (seq: Seq): Recorded => ({
    ...({ type: "turn.extended", runId: "run_a", turnId: "turn_a.1" } as const),
    ...{ text: "x".repeat(100_000), seq, at: 1 },
  });
  const MIB = 1024 * 1024;

  test("from the history, and receives all of them in the end", async () => {
    const log = Array.from({ length: 40 }, (_, index) => large(index + 1));
    const { pages } = house({}, log);
    const seen: number[] = [];
    while (seen.length < log.length) {
      const page = await next(pages);
      expect(heapBytes(page)).toBeLessThan(MIB / 2);
      for (const one of page) if ("seq" in one) seen.push(one.seq);
    }
    expect(seen).toEqual(log.map(({ seq }) => seq));
  });

  test("from the tail, with deltas between them", async () => {
    const { feeds, pages, record } = house({}, [event(1)]);
    await next(pages);
    const waits = next(pages);
    await settled();
    record(event(2));
    await waits;
    for (let seq = 3; seq <= 40; seq += 1) {
      feeds.delta("ses_a", delta("y".repeat(10_000)), seq - 1);
      record(large(seq));
    }
    const seen: number[] = [];
    while (seen.at(-1) !== 40) {
      const page = await next(pages);
      expect(heapBytes(page)).toBeLessThan(MIB);
      for (const one of page) if ("seq" in one) seen.push(one.seq);
    }
    expect(seen).toEqual(Array.from({ length: 38 }, (_, index) => index + 3));
  });

  test("from the memory store, whose pages are bounded too", async () => {
    const store = new MemoryStore({ clock: { elapsed: () => 0 } as Clock });
    const created: Event = { type: "session.created", sessionId: "ses_a" };
    const said: Event = { type: "session.mode_set", mode: "x".repeat(200_000) };
    await store.append({ session: "ses_a", expected: 0, events: [created], at: 1 });
    for (let head = 1; head < 20; head += 1) {
      await store.append({ session: "ses_a", expected: head, events: [said], at: 1 });
    }
    const { events } = await store.read("ses_a", { after: 0, limit: PAGE_EVENTS_MAX });
    expect(heapBytes(events)).toBeLessThan(MIB);
  });
});

describe("a follower whose signal has aborted", () => {
  const log = Array.from({ length: 100 }, (_, index) => event(index + 1));

  test("receives nothing more of the page it has begun", async () => {
    const stop = new AbortController();
    const events = pagedItems(house({ signal: stop.signal }, log).pages);
    const seen: FollowItem[] = [];
    for await (const one of events) {
      seen.push(one);
      if (seen.length === 3) stop.abort();
    }
    expect(seen).toEqual(log.slice(0, 3));
  });

  test("receives no page that was read meanwhile", async () => {
    const stop = new AbortController();
    const { feeds, pages } = house({ signal: stop.signal }, log);
    const reading = pages.next();
    stop.abort();
    expect((await reading).done).toBe(true);
    expect(feeds.size).toBe(0);
  });

  test("holds nothing, although it never requests another page", async () => {
    const stop = new AbortController();
    const { feeds, pages } = house({ signal: stop.signal }, log);
    await next(pages);
    expect(feeds.size).toBe(1);
    stop.abort();
    expect(feeds.size).toBe(0);
    expect(getEventListeners(stop.signal, "abort")).toEqual([]);
  });

  test("registers nothing if it aborted before the beginning", async () => {
    const { feeds, pages } = house({ signal: AbortSignal.abort() }, log);
    expect((await pages.next()).done).toBe(true);
    expect(feeds.size).toBe(0);
  });
});

describe("a follower that is not read any more", () => {
  test("registers nothing before its first page is requested", () => {
    const stop = new AbortController();
    const { feeds } = house({ signal: stop.signal });
    expect(feeds.size).toBe(0);
    expect(getEventListeners(stop.signal, "abort")).toEqual([]);
  });

  test("ends at once if it leaves while it waits for an event", async () => {
    const { feeds, pages } = house({}, [event(1)]);
    const events = pagedItems(pages);
    expect((await events.next()).value).toEqual(event(1));
    const waits = events.next();
    await settled();
    expect(feeds.size).toBe(1);
    const left = events.return();
    expect(feeds.size).toBe(0);
    expect(await Promise.all([left, waits])).toEqual([
      { done: true, value: undefined },
      { done: true, value: undefined },
    ]);
  });

  test("ends at once if it leaves while the store does not answer, or its position is not known", async () => {
    const { feeds, pages } = house({ after: new Promise(() => undefined) });
    const waits = pages.next();
    await settled();
    await pages.return();
    expect((await waits).done).toBe(true);
    expect(feeds.size).toBe(0);
  });

  test("is not left pending in the store while another worker drives", async () => {
    const { grown, pages } = house({ drives: () => false });
    const waits = pages.next();
    await settled();
    await pages.return();
    expect((await waits).done).toBe(true);
    await settled();
    expect(grown.map(({ aborted }) => aborted)).toEqual([true]);
  });
});

test("a follower that leaves holds nothing", async () => {
  const stop = new AbortController();
  const { feeds, pages } = house({ signal: stop.signal }, [event(1)]);
  await next(pages);
  expect(feeds.size).toBe(1);
  await pages.return();
  expect(feeds.size).toBe(0);
  expect(getEventListeners(stop.signal, "abort")).toEqual([]);
});
