// The store suite: the log.
import { describe, expect, it } from "vitest";
import { PAGE_CHARS_MAX } from "../../core/limits.ts";
import type { Event } from "../../core/model/event.ts";
import type { RunId, SessionId } from "../../core/model/ids.ts";
import { evolve } from "../../core/model/lane.ts";
import { accepted, add, batch, created, fold, headOf, refusedAs, SES, settled, started, wholeRun } from "./facts.ts";
import type { Suite } from "./suite.ts";

export function logContract(suite: Suite): void {
  appending(suite);
  keeping(suite);
  atOnce(suite);
  reading(suite);
  loading(suite);
  text(suite);
  closing(suite);
}

function appending({ opened }: Suite): void {
  describe("appending", () => {
    it("G29: numbers events from 1 without a gap, over many appends", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES), accepted("run_1")]);
      await add(store, SES, 2, started("run_1"));
      await add(store, SES, 4, [settled("run_1")]);
      const { events } = await store.read(SES, { after: 0, limit: 100 });
      expect(events.map((event) => event.seq)).toEqual([1, 2, 3, 4, 5]);
      expect(events.map((event) => event.type)).toEqual([
        "session.created",
        "run.accepted",
        "run.started",
        "turn.requested",
        "run.settled",
      ]);
    });

    it("returns exactly the appended events, with their position and time", async () => {
      const { store } = opened();
      const events = [created(SES, "A title"), ...wholeRun("run_1")];
      await store.append(batch(SES, 0, events, { at: 1_234 }));
      const page = await store.read(SES, { after: 0, limit: 100 });
      expect(page).toStrictEqual({ events: events.map((event, index) => ({ ...event, seq: index + 1, at: 1_234 })) });
    });

    it("appends nothing if the log has moved on, and returns its head", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES)]);
      expect(await store.append(batch(SES, 0, [accepted("run_1")]))).toEqual({ kind: "moved", head: 1 });
      expect(await store.append(batch(SES, 7, [accepted("run_1")]))).toEqual({ kind: "moved", head: 1 });
      expect(await headOf(store, SES)).toBe(1);
      expect(await store.run("run_1")).toBeUndefined();
    });

    it("appends nothing to a session that was never created", async () => {
      const { store } = opened();
      expect(await store.append(batch(SES, 3, [accepted("run_1")]))).toEqual({ kind: "moved", head: 0 });
      await refusedAs("internal", store.append(batch(SES, 0, [accepted("run_1")])));
      await refusedAs("internal", store.append(batch(SES, 0, [accepted("run_1", { key: "k" })])));
      expect(await store.load(SES)).toBeUndefined();
      expect(await store.run("run_1")).toBeUndefined();
    });

    it("stores all of a batch or none of it", { meta: { id: "store/batch-all-or-nothing" } }, async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES), accepted("run_1")]);
      // The last event is invalid, because the run was accepted before. The events before it must be dropped too.
      const bad = [accepted("run_2", { key: "k" }), settled("run_1"), accepted("run_1")];
      await refusedAs("internal", store.append(batch(SES, 2, bad)));
      expect(await headOf(store, SES)).toBe(2);
      expect(await store.run("run_2")).toBeUndefined();
      expect(await store.run({ session: SES, key: "k" })).toBeUndefined();
      expect(await store.run("run_1")).toMatchObject({ phase: "waiting", outcome: undefined });
      await add(store, SES, 2, [accepted("run_2", { key: "k" })]);
    });
  });
}

function keeping({ opened }: Suite): void {
  describe("keeping", () => {
    it("treats a batch without events as a check of the head", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES)]);
      expect(await store.append(batch(SES, 1, []))).toEqual({ kind: "appended", head: 1 });
      expect(await store.append(batch(SES, 0, []))).toEqual({ kind: "moved", head: 1 });
    });

    it("is unaffected by later changes to the caller's objects", async () => {
      const { store } = opened();
      const prompt = { text: "before" };
      const event: Event = { type: "run.accepted", runId: "run_1", prompt, delivery: "queue" };
      const appended = store.append(batch(SES, 0, [created(SES), event]));
      prompt.text = "after";
      await appended;
      const [, read] = (await store.read(SES, { after: 0, limit: 2 })).events;
      expect(read).toMatchObject({ prompt: { text: "before" } });
    });

    it("fails only the invalid batch of several concurrent ones", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES), accepted("run_1"), settled("run_1")]);
      const sessions = names(20);
      const answers = await Promise.allSettled([
        ...sessions.slice(0, 10).map((id) => store.append(batch(id, 0, [created(id)]))),
        store.append(batch(SES, 3, [settled("run_1")])),
        ...sessions.slice(10).map((id) => store.append(batch(id, 0, [created(id)]))),
      ]);
      expect(answers.map((answer) => answer.status).filter((status) => status === "rejected")).toHaveLength(1);
      expect(answers[10]?.status).toBe("rejected");
      for (const id of sessions) expect(await headOf(store, id)).toBe(1);
    });
  });
}

function atOnce({ opened }: Suite): void {
  describe("appending at once", () => {
    it("accepts a hundred concurrent appends to a hundred sessions", async () => {
      const { store } = opened();
      const sessions = names(100);
      await Promise.all(sessions.map((id, index) => add(store, id, 0, [created(id), accepted(`run_${index}`)])));
      for (const id of sessions) expect(await headOf(store, id)).toBe(2);
    });

    it("accepts a hundred concurrent appends to one session in the order in which they were made", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES)]);
      await Promise.all(runs(100).map((id, index) => add(store, SES, index + 1, [accepted(id)])));
      const { events } = await store.read(SES, { after: 1, limit: 1_000 });
      expect(events.map((event) => (event.type === "run.accepted" ? event.runId : event.type))).toEqual(runs(100));
      expect(events.map((event) => event.seq)).toEqual(runs(100).map((_, index) => index + 2));
    });

    it("G29: accepts one of many appends with the same expected head, and returns the head to the others", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES)]);
      const answers = await Promise.all(runs(50).map((id) => store.append(batch(SES, 1, [accepted(id)]))));
      expect(answers.filter((answer) => answer.kind === "appended")).toHaveLength(1);
      expect(answers.filter((answer) => answer.kind === "moved" && answer.head === 2)).toHaveLength(49);
      expect(await headOf(store, SES)).toBe(2);
    });
  });
}

function reading({ opened }: Suite): void {
  describe("reading", () => {
    it("G30: returns a contiguous page from any position, for appends of any size", async () => {
      const { store } = opened();
      let head = await add(store, SES, 0, [created(SES)]);
      for (const id of runs(5)) head = await add(store, SES, head, wholeRun(id));
      for (let after = 0; after <= head; after += 1) {
        for (const limit of [1, 2, 3, 7, 100]) {
          const { events, gapTo } = await store.read(SES, { after, limit });
          expect(gapTo).toBeUndefined();
          const wanted = Math.min(limit, head - after);
          expect(events.map((event) => event.seq)).toEqual(
            Array.from({ length: wanted }, (_, index) => after + 1 + index),
          );
        }
      }
    });

    it("returns an empty page at the head, past it, and for a session that does not exist", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES)]);
      expect(await store.read(SES, { after: 1, limit: 10 })).toEqual({ events: [] });
      expect(await store.read(SES, { after: 99, limit: 10 })).toEqual({ events: [] });
      expect(await store.read("ses_none", { after: 0, limit: 10 })).toEqual({ events: [] });
    });

    it("G31: returns fewer events if they are large, and all of them over several pages", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES)]);
      const text = "x".repeat(PAGE_CHARS_MAX / 2);
      for (const [index, id] of runs(5).entries()) await add(store, SES, index + 1, [accepted(id, { text })]);
      const found: number[] = [];
      for (;;) {
        const { events } = await store.read(SES, { after: found.length, limit: 100 });
        if (events.length === 0) break;
        // At most one append more than the limit.
        expect(JSON.stringify(events).length).toBeLessThan(2 * PAGE_CHARS_MAX);
        found.push(...events.map(({ seq }) => seq));
      }
      expect(found).toEqual([1, 2, 3, 4, 5, 6]);
      expect((await store.load(SES))?.events.map(({ seq }) => seq)).toEqual(found);
    });

    it("keeps the logs of sessions separate", async () => {
      const { store } = opened();
      await Promise.all(names(10).map((id, index) => add(store, id, 0, [created(id), ...wholeRun(`run_${index}`)])));
      for (const [index, id] of names(10).entries()) {
        const { events } = await store.read(id, { after: 1, limit: 100 });
        expect(new Set(events.map((event) => "runId" in event && event.runId))).toEqual(new Set([`run_${index}`]));
      }
    });
  });
}

function loading({ opened }: Suite): void {
  describe("loading", () => {
    it("returns undefined for a session that does not exist", async () => {
      expect(await opened().store.load(SES)).toBeUndefined();
    });

    it("returns the whole log if there is no snapshot", async () => {
      const { store } = opened();
      const events = [created(SES), accepted("run_1"), ...started("run_1")];
      await add(store, SES, 0, events);
      const loaded = await store.load(SES);
      expect(loaded).toMatchObject({ snapshot: undefined, head: 4 });
      expect(fold(SES, loaded?.events ?? [])).toEqual(fold(SES, events));
    });

    it("returns the last snapshot and the later events, which together are the lane", async () => {
      const { store } = opened();
      const first = [created(SES), accepted("run_1", { key: "k" }), accepted("run_2"), ...started("run_1")];
      const snapshot = fold(SES, first);
      await store.append(batch(SES, 0, first, { snapshot }));
      expect(await store.load(SES)).toStrictEqual({ snapshot, events: [], head: 5, memos: [] });

      await add(store, SES, 5, [settled("run_1")]);
      const loaded = await store.load(SES);
      expect(loaded?.snapshot).toStrictEqual(snapshot);
      expect(loaded?.events.map((event) => event.seq)).toEqual([6]);
      expect(loaded?.head).toBe(6);
      const lane = (loaded?.events ?? []).reduce(evolve, loaded?.snapshot ?? snapshot);
      expect(lane).toEqual(fold(SES, [...first, settled("run_1")]));
    });

    it("stores no snapshot of an append that was rejected", {
      meta: { id: "store/no-snapshot-without-append" },
    }, async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES)]);
      const wrong = fold(SES, [created(SES), accepted("run_1")]);
      await store.append(batch(SES, 0, [created(SES), accepted("run_1")], { snapshot: wrong }));
      expect(await store.load(SES)).toMatchObject({ snapshot: undefined, head: 1 });
    });

    it("rejects a snapshot of another position than the end of the append", async () => {
      const { store } = opened();
      const snapshot = fold(SES, [created(SES), accepted("run_1")]);
      await expect(store.append(batch(SES, 0, [created(SES)], { snapshot }))).rejects.toThrow("snapshot");
      expect(await store.load(SES)).toBeUndefined();
    });
  });
}

function text({ opened }: Suite): void {
  describe("text", () => {
    const odd = 'naïve 漢字 🦀 \u2028\u2029 \u0000\u0007 "quoted" \\ \ud800 lone \udfff';

    it("is preserved: other scripts, control characters, lone surrogates", {
      meta: { id: "store/odd-text-survives" },
    }, async () => {
      const { store } = opened();
      const events: Event[] = [
        created(SES, "naïve 漢字 🦀"),
        { type: "run.accepted", runId: "run_1", prompt: { text: odd, data: { [odd]: [odd] } }, delivery: "queue" },
        { type: "run.settled", runId: "run_1", outcome: { kind: "failed", code: "odd", message: odd } },
      ];
      const snapshot = fold(SES, events);
      await store.append(batch(SES, 0, events, { snapshot }));
      const read = (await store.read(SES, { after: 0, limit: 3 })).events;
      expect(read).toStrictEqual(events.map((event, index) => ({ ...event, seq: index + 1, at: 1_000 })));
      expect(await store.run("run_1")).toMatchObject({ outcome: { kind: "failed", code: "odd", message: odd } });
      expect((await store.sessions({ after: undefined, limit: 1 }))[0]?.title).toBe("naïve 漢字 🦀");
    });

    it("is preserved at a mebibyte", async () => {
      const { store } = opened();
      const text = "0123456789abcdé🦀".repeat(65_536).slice(0, 1024 * 1024);
      await add(store, SES, 0, [created(SES), accepted("run_1", { text })]);
      const [event] = (await store.read(SES, { after: 1, limit: 1 })).events;
      expect(event?.type === "run.accepted" && event.prompt.text === text).toBe(true);
    });
  });
}

function closing({ opened }: Suite): void {
  describe("closing", () => {
    it("makes every later call reject as unavailable, and can be repeated", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES)]);
      await store.close();
      await store.close();
      const signal = new AbortController().signal;
      await refusedAs("unavailable", store.append(batch(SES, 1, [accepted("run_1")])));
      await refusedAs("unavailable", store.load(SES));
      await refusedAs("unavailable", store.read(SES, { after: 0, limit: 1 }));
      await refusedAs("unavailable", store.grown(SES, 0, signal));
      await refusedAs("unavailable", store.run("run_1"));
      await refusedAs("unavailable", store.call("call_1.1"));
      await refusedAs("unavailable", store.runs(SES, { before: 9, limit: 1 }));
      await refusedAs("unavailable", store.process("proc_a.1"));
      await refusedAs("unavailable", store.processes(SES, { before: 9, limit: 1 }));
      await refusedAs("unavailable", store.session(SES));
      await refusedAs("unavailable", store.sessions({ after: undefined, limit: 1 }));
      await refusedAs("unavailable", store.unattended(1));
      await refusedAs("unavailable", store.claim(SES, "wrk_a", 1_000));
      await refusedAs("unavailable", store.renew("wrk_a", 1_000));
      await refusedAs("unavailable", store.release(SES, "wrk_a"));
      await refusedAs("unavailable", store.trim(SES, 1));
      if (store.ready !== undefined) await refusedAs("unavailable", store.ready());
    });

    it("completes pending appends first", async () => {
      const { store } = opened();
      const pending = store.append(batch(SES, 0, [created(SES)]));
      await store.close();
      expect(await pending).toEqual({ kind: "appended", head: 1 });
    });
  });
}

const names = (count: number): readonly SessionId[] =>
  Array.from({ length: count }, (_, index): SessionId => `ses_${index}`);
const runs = (count: number): readonly RunId[] => Array.from({ length: count }, (_, index): RunId => `run_${index}`);
