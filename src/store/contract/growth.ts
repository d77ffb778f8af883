// The store suite: waiting for a log to grow.
import { describe, expect, it } from "vitest";
import { accepted, add, created, SES } from "./facts.ts";
import type { Suite } from "./suite.ts";

export function growthContract({ opened }: Suite): void {
  describe("growing", () => {
    const never = new AbortController().signal;

    it("returns at once if the log has grown past the position already", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES), accepted("run_1")]);
      await store.grown(SES, 0, never);
      await store.grown(SES, 1, never);
    });

    it("returns when the log grows, even for a session that does not exist yet", async () => {
      const { store } = opened();
      const first = store.grown(SES, 0, never);
      await add(store, SES, 0, [created(SES)]);
      await first;
      const second = store.grown(SES, 1, never);
      await add(store, SES, 1, [accepted("run_1")]);
      await second;
    });

    it("never misses an append that is made during the call", {
      meta: { id: "G29/append-never-missed" },
    }, async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES)]);
      for (let head = 1; head <= 50; head += 1) {
        await Promise.all([add(store, SES, head, [accepted(`run_${head}`)]), store.grown(SES, head, never)]);
      }
      for (let head = 51; head <= 100; head += 1) {
        await Promise.all([store.grown(SES, head, never), add(store, SES, head, [accepted(`run_${head}`)])]);
      }
    });

    it("does not return for an append to another session, or below the position", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES)]);
      let answered = false;
      const abort = new AbortController();
      const waiting = store.grown(SES, 2, abort.signal).then(() => {
        answered = true;
      });
      let early = false;
      const next = store.grown(SES, 1, abort.signal).then(() => {
        early = true;
      });
      await add(store, "ses_b", 0, [created("ses_b"), accepted("run_9"), accepted("run_10")]);
      await store.load(SES);
      expect(early).toBe(false);
      await add(store, SES, 1, [accepted("run_1")]);
      await next;
      await store.load(SES);
      expect(answered).toBe(false);
      await add(store, SES, 2, [accepted("run_2")]);
      await waiting;
    });

    it("returns when its signal aborts, before or during the wait", async () => {
      const { store } = opened();
      await store.grown(SES, 0, AbortSignal.abort());
      const abort = new AbortController();
      const waiting = store.grown(SES, 0, abort.signal);
      abort.abort();
      await waiting;
    });

    it("returns for all waiters when the store closes", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES)]);
      const waiting = Promise.all([store.grown(SES, 1, never), store.grown("ses_b", 5, never)]);
      await store.close();
      await waiting;
    });
  });
}
