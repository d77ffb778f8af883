// The store suite: memos, which are stored with an append, outside of the log, and returned by `load`.
import { describe, expect, it } from "vitest";
import { MEMO_MS, MEMOS_PER_ACTOR_MAX } from "../../core/limits.ts";
import { drop, keep, type Memo, memoName, type PromptMemo } from "../../core/model/memo.ts";
import { accepted, batch, created, SES, settled, started } from "./facts.ts";
import type { Suite } from "./suite.ts";

const prompt = (key: string, actor = "ann"): PromptMemo => ({ kind: "prompt", key, actor, reason: { kind: "user" } });
const answer: Memo = { kind: "answer", key: "K", content: "c", answer: { kind: "idle", runs: [], note: "\u{1f6d1}" } };

export function memoContract({ opened }: Suite): void {
  describe("memos", () => {
    it("have no position in the log, and load oldest first", async () => {
      const { store } = opened();
      await store.append(batch(SES, 0, [created(SES)]));
      const memos = [prompt("k"), answer].map(keep);
      expect(await store.append(batch(SES, 1, [], { memos }))).toEqual({ kind: "appended", head: 1 });
      expect(await store.load(SES)).toMatchObject({ head: 1, memos: [prompt("k"), answer] });
      expect((await store.read(SES, { after: 1, limit: 10 })).events).toEqual([]);
      await store.append(batch(SES, 1, [accepted("run_1", { key: "k" })], { memos: [drop(prompt("k"))] }));
      expect(await store.load(SES)).toMatchObject({ head: 2, memos: [answer] });
    });

    it("can belong to a session that does not exist yet, and do not create it", async () => {
      const { store } = opened();
      expect(await store.append(batch(SES, 0, [], { memos: [keep(prompt("k"))] }))).toMatchObject({ kind: "appended" });
      expect(await store.load(SES)).toEqual({ snapshot: undefined, events: [], head: 0, memos: [prompt("k")] });
      expect(await store.session(SES)).toBeUndefined();
      await store.append(batch(SES, 0, [created(SES)]));
      expect(await store.load(SES)).toMatchObject({ head: 1, memos: [prompt("k")] });
    });

    it("are fenced and rejected together with the events of their batch", async () => {
      const { store } = opened();
      await store.append(batch(SES, 0, [created(SES)]));
      const memos = [keep(prompt("k"))];
      expect(await store.append(batch(SES, 0, [], { memos }))).toEqual({ kind: "moved", head: 1 });
      const claim = await store.claim(SES, "wrk_1", 10_000);
      if (claim.kind !== "claimed") throw new Error("not claimed");
      expect(await store.append(batch(SES, 1, [], { memos, epoch: claim.epoch + 1 }))).toEqual({ kind: "fenced" });
      expect(await store.load(SES)).toMatchObject({ memos: [] });
    });

    it("of which a batch was unaware are returned instead of appending it", async () => {
      const { store } = opened();
      await store.append(batch(SES, 0, [created(SES)], { memos: [keep(prompt("k")), keep(answer)] }));
      const unless = [memoName(prompt("k")), memoName({ kind: "answer", key: "other" })];
      const late = batch(SES, 1, [accepted("run_1", { key: "k" })], { unless });
      expect(await store.append(late)).toEqual({ kind: "recalled", memos: [prompt("k")] });
      const another = { unless: [memoName(prompt("k", "bob"))] };
      expect(await store.append({ ...late, ...another })).toMatchObject({ kind: "appended", head: 2 });
    });

    it("are not stored for a prompt that has a run: its key is taken", async () => {
      const { store } = opened();
      const run = [accepted("run_1", { key: "k" }), ...started("run_1"), settled("run_1")];
      await store.append(batch(SES, 0, [created(SES), ...run]));
      const receipt = await store.append(batch(SES, 5, [], { memos: [keep(prompt("k")), keep(prompt("l"))] }));
      expect(receipt).toMatchObject({ kind: "taken", runs: [{ key: "k", runId: "run_1" }] });
      expect(await store.load(SES)).toMatchObject({ memos: [] });
    });

    it("of prompts are limited per user, over all sessions: one more is refused, and none is evicted", async () => {
      const { store } = opened();
      const full = Array.from({ length: MEMOS_PER_ACTOR_MAX }, (_, index) => keep(prompt(`k${index}`)));
      await store.append(batch(SES, 0, [], { memos: full }));
      const more = { memos: [keep(prompt("more"))] };
      expect(await store.append(batch("ses_b", 0, [], more))).toEqual({ kind: "crowded", actors: ["ann"] });
      // An existing one, an answer, and one of another user.
      const others = { memos: [keep(prompt("k1")), keep(answer), keep(prompt("more", "bob"))] };
      expect(await store.append(batch(SES, 0, [], others))).toMatchObject({ kind: "appended" });
      expect((await store.load(SES))?.memos).toHaveLength(MEMOS_PER_ACTOR_MAX + 2);
    });

    it("of one tenant do not count for the same user name of another tenant", async () => {
      const { store } = opened();
      const full = Array.from({ length: MEMOS_PER_ACTOR_MAX }, (_, index) => keep(prompt(`k${index}`)));
      const more = { memos: [keep(prompt("more"))] };
      await store.append(batch("ses_a.1", 0, [], { memos: full }));
      expect(await store.append(batch("ses_a.2", 0, [], more))).toEqual({ kind: "crowded", actors: ["ann"] });
      expect(await store.append(batch("ses_b.1", 0, [], more))).toMatchObject({ kind: "appended" });
      expect(await store.append(batch("ses_1", 0, [], more))).toMatchObject({ kind: "appended" });
    });

    it("expire once no client retries any more, which frees their user's limit", async () => {
      const { store, pass } = opened();
      const full = Array.from({ length: MEMOS_PER_ACTOR_MAX }, (_, index) => keep(prompt(`k${index}`)));
      await store.append(batch(SES, 0, [], { memos: full }));
      const late = batch("ses_b", 0, [], { memos: [keep(prompt("more"))] });
      const unless = { unless: [memoName(prompt("k1"))] };
      await pass(MEMO_MS - 1_000);
      expect(await store.append(batch(SES, 0, [], unless))).toMatchObject({ kind: "recalled" });
      // A wall clock that was set forward expires nothing.
      expect(await store.append({ ...late, at: 2 * MEMO_MS })).toMatchObject({ kind: "crowded" });
      await pass(1_000);
      expect(await store.append(batch(SES, 0, [], unless))).toMatchObject({ kind: "appended" });
      expect(await store.append({ ...late, at: 1 })).toMatchObject({ kind: "appended" });
      expect(await store.load(SES)).toBeUndefined();
    });
  });
}
