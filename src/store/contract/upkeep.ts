// The store suite: deletion, retention and sizes.
import { describe, expect, it } from "vitest";
import { REMOVE_ROWS_MAX, RUN_ROWS_KEPT } from "../../core/limits.ts";
import type { RunId, SessionId } from "../../core/model/ids.ts";
import { keep } from "../../core/model/memo.ts";
import type { Upkeep } from "../../core/model/upkeep.ts";
import type { Store } from "../../ports/store.ts";
import {
  accepted,
  add,
  batch,
  callSettled,
  completed,
  created,
  fold,
  processRequested,
  processSettled,
  SES,
  settled,
  started,
  wholeRun,
} from "./facts.ts";
import type { Suite } from "./suite.ts";

const OTHER: SessionId = "ses_b";

export function upkeepContract({ opened }: Suite): void {
  describe("deleting a session", () => {
    it("removes everything of it, and nothing of other sessions", async () => {
      const { store } = opened();
      await add(store, OTHER, 0, [created(OTHER), ...wholeRun("run_o")]);
      const events = [
        created(SES),
        accepted("run_1", { key: "k" }),
        ...started("run_1"),
        callSettled("run_1", 1, completed),
        settled("run_1"),
        processRequested(SES, 1),
        processSettled(SES, 1, completed),
      ];
      await store.append(batch(SES, 0, events, { snapshot: fold(SES, events) }));
      expect(await removed(store, SES)).toBe("done");
      expect(await store.session(SES)).toBeUndefined();
      expect(await store.load(SES)).toBeUndefined();
      expect(await store.run("run_1")).toBeUndefined();
      expect(await store.run({ session: SES, key: "k" })).toBeUndefined();
      expect(await store.call("call_1.1")).toBeUndefined();
      expect(await store.process("proc_a.1")).toBeUndefined();
      expect(await store.read(SES, { after: 0, limit: 10 })).toEqual({ events: [] });
      expect(await store.ids({ prefix: "", limit: 10 })).toMatchObject({ ids: ["run_o", OTHER] });
      expect((await store.read(OTHER, { after: 0, limit: 100 })).events).toHaveLength(7);
      expect(await removed(store, SES)).toBe("absent");
    });

    it("removes its memos, and keeps those of other sessions, even of one that was never created", async () => {
      const { store } = opened();
      const memo = (key: string) => keep({ kind: "prompt", key, actor: "ann", reason: { kind: "user" } });
      const many = Array.from({ length: 2 * REMOVE_ROWS_MAX + 1 }, (_, index) => memo(`k${index}`));
      const events = [created(SES), ...wholeRun("run_1")];
      await store.append(batch(SES, 0, events, { snapshot: fold(SES, events), memos: many }));
      await store.append(batch(OTHER, 0, [], { memos: [memo("k")] }));
      expect(await removed(store, SES)).toBe("done");
      expect(await removed(store, OTHER)).toBe("absent");
      await add(store, SES, 0, [created(SES)]);
      expect((await store.load(SES))?.memos).toEqual([]);
      expect((await store.load(OTHER))?.memos).toHaveLength(1);
    });

    it("allows a new session with the same id", async () => {
      const { store } = opened();
      const events = [created(SES), ...wholeRun("run_1")];
      await store.append(batch(SES, 0, events, { snapshot: fold(SES, events) }));
      expect(await removed(store, SES)).toBe("done");
      await add(store, SES, 0, [created(SES), accepted("run_2", { key: "k" })]);
      expect(await store.load(SES)).toMatchObject({ head: 2, snapshot: undefined });
    });

    it("is refused while a run or a process has no outcome, or without a snapshot of the end", async () => {
      const { store } = opened();
      const live = [created(SES), accepted("run_1")];
      await store.append(batch(SES, 0, live, { snapshot: fold(SES, live) }));
      expect(await removed(store, SES)).toBe("busy");
      const working = [created(OTHER), processRequested(OTHER, 1)];
      await store.append(batch(OTHER, 0, working, { snapshot: fold(OTHER, working) }));
      expect(await removed(store, OTHER)).toBe("busy");
      await add(store, "ses_c", 0, [created("ses_c")]);
      expect(await removed(store, "ses_c")).toBe("busy");
      expect((await store.read(SES, { after: 0, limit: 10 })).events).toHaveLength(2);
    });

    it("wakes a reader that waits for it to grow", async () => {
      const { store } = opened();
      await store.append(batch(SES, 0, [created(SES)], { snapshot: fold(SES, [created(SES)]) }));
      const grown = store.grown(SES, 1, new AbortController().signal);
      expect(await removed(store, SES)).toBe("done");
      await grown;
    });
  });

  describe("a look at its sessions", () => {
    it("returns the length of each log and when it last grew, in pages", async () => {
      const { store } = opened();
      await store.append(batch(SES, 0, [created(SES)], { at: 10 }));
      await store.append(batch(OTHER, 0, [created(OTHER)], { at: 20 }));
      const events = [created(SES), ...wholeRun("run_1")];
      await store.append(batch(SES, 1, events.slice(1), { at: 30, snapshot: fold(SES, events) }));
      const [first] = await upkeep(store).survey({ after: 0, limit: 1 });
      expect(first).toMatchObject({ id: SES, kept: 1, head: 7, since: 10, at: 30 });
      const rest = await upkeep(store).survey({ after: first?.cursor ?? 0, limit: 5 });
      expect(rest).toMatchObject([{ id: OTHER, kept: 1, head: 1, at: 20 }]);
      await store.trim(SES, 8);
      expect(await upkeep(store).survey({ after: 0, limit: 1 })).toMatchObject([{ kept: 8, head: 7, at: 10 }]);
    });

    it("finds the position from which a log is within an age and a size", async () => {
      const { store } = opened();
      await store.append(batch(SES, 0, [created(SES)], { at: 10 }));
      await store.append(batch(SES, 1, wholeRun("run_1"), { at: 20 }));
      await store.append(batch(SES, 7, wholeRun("run_2"), { at: 30 }));
      const within = (limits: { at?: number; bytes?: number }) => upkeep(store).within(SES, limits);
      expect(await within({ at: 0 })).toBe(1);
      expect(await within({ at: 20 })).toBe(2);
      expect(await within({ at: 21 })).toBe(8);
      expect(await within({ at: 31 })).toBe(14);
      expect(await within({ bytes: 1_000_000 })).toBe(1);
      expect(await within({ bytes: 600 })).toBe(8);
      expect(await within({ bytes: 1 })).toBe(14);
      expect(await within({ at: 21, bytes: 1_000_000 })).toBe(8);
      expect(await upkeep(store).within("ses_none", { at: 5 })).toBe(1);
    });

    it("returns the size of the store", async () => {
      const { store } = opened();
      const before = await upkeep(store).usage();
      const text = "x".repeat(100_000);
      await add(store, SES, 0, [created(SES), accepted("run_1", { text })]);
      expect((await upkeep(store).usage()).bytes).toBeGreaterThanOrEqual(before.bytes + 100_000);
      expect(await upkeep(store).reclaim()).toBeGreaterThanOrEqual(0);
    });
  });

  describe("the rows of runs whose events were removed", () => {
    it("are kept for the newest of them, with their keys, and removed beyond those", { timeout: 60_000 }, async () => {
      const { store } = opened();
      const events = [created(SES)];
      const extra = 5;
      for (let index = 0; index < RUN_ROWS_KEPT + extra; index += 1) {
        const run: RunId = `run_${String(index).padStart(5, "0")}`;
        events.push(accepted(run, { key: `key ${index}` }), callSettled(run, 1, completed), settled(run));
      }
      const head = events.length;
      await store.append(batch(SES, 0, events, { snapshot: { ...fold(SES, [created(SES)]), head } }));
      let more = true;
      while (more) more = (await store.trim(SES, head + 1)).more;
      expect(await store.run("run_00004")).toBeUndefined();
      expect(await store.call("call_00004.1")).toBeUndefined();
      expect(await store.run({ session: SES, key: "key 4" })).toBeUndefined();
      expect(await store.run({ session: SES, key: "key 5" })).toMatchObject({ id: "run_00005" });
      expect(await store.call("call_00005.1")).toMatchObject({ outcome: completed });
      expect(await store.runs(SES, { before: 1_000_000, limit: 2_000 })).toHaveLength(RUN_ROWS_KEPT);
    });
  });
}

function upkeep(store: Store): Upkeep {
  if (store.upkeep === undefined) throw new Error("this store has no upkeep");
  return store.upkeep;
}

/** Repeats the deletion until it is complete. */
async function removed(store: Store, session: SessionId): Promise<string> {
  for (;;) {
    const step = await upkeep(store).remove(session);
    if (step !== "more") return step;
  }
}
