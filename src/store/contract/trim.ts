// The store suite: trimming old events.
import { describe, expect, it } from "vitest";
import type { Event } from "../../core/model/event.ts";
import type { RunId, Seq } from "../../core/model/ids.ts";
import { evolve } from "../../core/model/lane.ts";
import type { Store } from "../../ports/store.ts";
import {
  accepted,
  add,
  batch,
  completed,
  created,
  fold,
  processRequested,
  processSettled,
  SES,
  settled,
  wholeRun,
} from "./facts.ts";
import type { Suite } from "./suite.ts";

export function trimContract({ opened }: Suite): void {
  describe("trimming", () => {
    it("G30: removes older events, and reports the gap to readers below it", {
      meta: { id: "G30/store-trim-reports-gap" },
    }, async () => {
      const { store } = opened();
      const head = await snapshotted(store, [created(SES), ...wholeRun("run_1"), ...wholeRun("run_2")]);
      expect(await store.trim(SES, 8)).toEqual({ kept: 8, removed: 7, more: false });
      const page = await store.read(SES, { after: 0, limit: 3 });
      expect(page.gapTo).toBe(7);
      expect(page.events.map((event) => event.seq)).toEqual([8, 9, 10]);
      expect(await store.read(SES, { after: 3, limit: 1 })).toMatchObject({ gapTo: 7, events: [{ seq: 8 }] });
      expect((await store.read(SES, { after: 7, limit: 1 })).gapTo).toBeUndefined();
      expect((await store.read(SES, { after: 7, limit: 100 })).events).toHaveLength(head - 7);
    });

    it("G30: returns a full page from behind the gap to a reader below it", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES)]);
      for (let head = 1; head < 20; head += 2) {
        const run: RunId = `run_${head}`;
        await add(store, SES, head, [accepted(run)]);
        await add(store, SES, head + 1, [settled(run)]);
      }
      const { events } = await store.read(SES, { after: 0, limit: 100 });
      await store.append(batch(SES, 21, [], { snapshot: fold(SES, events) }));
      expect(await store.trim(SES, 12)).toMatchObject({ kept: 12 });
      const page = await store.read(SES, { after: 0, limit: 4 });
      expect(page).toMatchObject({ gapTo: 11, events: [{ seq: 12 }, { seq: 13 }, { seq: 14 }, { seq: 15 }] });
      expect((await store.read(SES, { after: 9, limit: 100 })).events).toHaveLength(10);
    });

    it("never removes what follows the last snapshot, so that the session still loads", async () => {
      const { store } = opened();
      const first = [created(SES), ...wholeRun("run_1")];
      const head = await snapshotted(store, first);
      await add(store, SES, head, wholeRun("run_2"));
      expect(await store.trim(SES, 1_000)).toMatchObject({ kept: head + 1 });
      const loaded = await store.load(SES);
      expect(loaded?.head).toBe(head + 6);
      const lane = (loaded?.events ?? []).reduce(evolve, loaded?.snapshot ?? fold(SES, []));
      expect(lane).toEqual(fold(SES, [...first, ...wholeRun("run_2")]));
    });

    it("never removes a part of a run, live or waiting", async () => {
      const { store } = opened();
      const [first, ...rest] = wholeRun("run_1");
      // Accepted while run_1 is live, and started after it.
      const head = await snapshotted(store, [
        created(SES),
        ...(first === undefined ? [] : [first]),
        accepted("run_2"),
        ...rest,
        ...wholeRun("run_2").slice(1),
        ...wholeRun("run_3"),
      ]);
      expect(await store.trim(SES, 10)).toEqual({ kept: 2, removed: 1, limit: "run", more: false });
      expect(await store.trim(SES, 14)).toMatchObject({ kept: 14, removed: 12 });
      expect(await store.trim(SES, head)).toMatchObject({ kept: 14, removed: 0, limit: "run" });
      expect(await store.trim(SES, head + 1)).toEqual({ kept: head + 1, removed: 6, more: false });
    });

    it("removes nothing from a log without a snapshot", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES), ...wholeRun("run_1")]);
      expect(await store.trim(SES, 5)).toMatchObject({ kept: 1 });
      expect((await store.read(SES, { after: 0, limit: 100 })).events).toHaveLength(7);
    });

    it("never removes events of a run that has no outcome", {
      meta: { id: "store/open-runs-never-trimmed" },
    }, async () => {
      const { store } = opened();
      const head = await snapshotted(store, [
        created(SES),
        ...wholeRun("run_1"),
        accepted("run_2"),
        ...wholeRun("run_3"),
      ]);
      expect(await store.trim(SES, head)).toMatchObject({ kept: 8 });
      await snapshotted(store, [settled("run_2")], head);
      expect(await store.trim(SES, head + 2)).toMatchObject({ kept: head + 2 });
    });

    it("never removes the request of a process that has no outcome", async () => {
      const { store } = opened();
      const first = [created(SES), ...wholeRun("run_1"), processRequested(SES, 1), processRequested(SES, 2)];
      const head = await snapshotted(store, [...first, ...wholeRun("run_2"), accepted("run_3")]);
      expect(await store.trim(SES, head)).toMatchObject({ kept: 8 });
      const next = await snapshotted(store, [processSettled(SES, 1, completed)], head);
      expect(await store.trim(SES, head)).toMatchObject({ kept: 9 });
      const last = await snapshotted(store, [processSettled(SES, 2, completed)], next);
      expect(await store.trim(SES, last)).toMatchObject({ kept: head });
      expect(await store.processes(SES, { before: last, limit: 10 })).toMatchObject([
        { id: "proc_a.2", requestedAt: 9 },
        { id: "proc_a.1", requestedAt: 8 },
      ]);
    });

    it("never moves the start of the log back, and keeps the rows", async () => {
      const { store } = opened();
      const head = await snapshotted(store, [created(SES), accepted("run_1", { key: "k" }), settled("run_1")]);
      expect(await store.trim(SES, head + 1)).toMatchObject({ kept: head + 1 });
      expect(await store.trim(SES, 1)).toMatchObject({ kept: head + 1 });
      expect(await store.read(SES, { after: 0, limit: 10 })).toEqual({ events: [], gapTo: head });
      expect(await store.run({ session: SES, key: "k" })).toMatchObject({ id: "run_1", acceptedAt: 2 });
      expect(await store.load(SES)).toMatchObject({ head, events: [] });
      expect(await store.sessions({ after: undefined, limit: 1 })).toMatchObject([{ head }]);
      await add(store, SES, head, [accepted("run_2")]);
    });

    it("includes an append that was made before it and not awaited", async () => {
      const { store } = opened();
      const events = [created(SES), ...wholeRun("run_1")];
      const appended = store.append(batch(SES, 0, events, { snapshot: fold(SES, events) }));
      expect(await store.trim(SES, 8)).toMatchObject({ kept: 8 });
      expect(await appended).toEqual({ kind: "appended", head: events.length });
    });

    it("reports nothing removed for a session that does not exist", async () => {
      expect(await opened().store.trim("ses_none", 10)).toMatchObject({ kept: 1 });
    });
  });
}

let folded: readonly Event[] = [];

/** Appends with a snapshot of the lane after it. */
async function snapshotted(store: Store, events: readonly Event[], expected: Seq = 0): Promise<Seq> {
  folded = expected === 0 ? events : [...folded, ...events];
  const snapshot = fold(SES, folded);
  expect(await store.append(batch(SES, expected, events, { snapshot }))).toMatchObject({ kind: "appended" });
  return expected + events.length;
}
