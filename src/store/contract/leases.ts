// The store suite: leases, the exclusive right to drive a session.
import { describe, expect, it } from "vitest";
import type { SessionId, WorkerId } from "../../core/model/ids.ts";
import type { Store } from "../../ports/store.ts";
import {
  accepted,
  add,
  batch,
  completed,
  created,
  headOf,
  processRequested,
  processSettled,
  SES,
  settled,
  started,
} from "./facts.ts";
import type { Suite } from "./suite.ts";

const A: WorkerId = "wrk_a";
const B: WorkerId = "wrk_b";
const TTL = 1_000;

export function leaseContract(suite: Suite): void {
  leasing(suite);
  fencing(suite);
  expiry(suite);
}

function leasing({ opened }: Suite): void {
  describe("leasing", () => {
    it("G26: gives a lane to one worker, and reports its holder and the remaining time to another", {
      meta: { id: "G26/one-worker-per-lane" },
    }, async () => {
      const { store, pass } = opened();
      await add(store, SES, 0, [created(SES)]);
      const claim = await store.claim(SES, A, TTL);
      expect(claim).toMatchObject({ kind: "claimed" });
      const held = await store.claim(SES, B, TTL);
      expect(held).toMatchObject({ kind: "held", by: A });
      expect(held.kind === "held" && held.forMs > 0 && held.forMs <= TTL).toBe(true);
      expect(await store.claim("ses_b", B, TTL)).toMatchObject({ kind: "claimed" });
      await pass(TTL - 100);
      const later = await store.claim(SES, B, TTL);
      expect(later.kind === "held" && later.forMs > 0 && later.forMs <= 100).toBe(true);
    });

    it("G26: renewing reports lost lanes, except those that the worker released itself", async () => {
      const { store, pass } = opened();
      await add(store, SES, 0, [created(SES)]);
      await store.release("ses_none", A);
      await claimed(store, SES, A);
      await claimed(store, "ses_b", A);
      await store.release(SES, A);
      expect(await store.renew(A, TTL)).toEqual([]);
      await pass(TTL);
      await claimed(store, "ses_b", B);
      await store.release("ses_b", B);
      expect(await store.renew(A, TTL)).toEqual(["ses_b"]);
      expect(await store.renew(A, TTL)).toEqual([]);
    });

    it("renews a worker's own leases under the same epoch", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES)]);
      const first = await store.claim(SES, A, TTL);
      expect(await store.claim(SES, A, TTL)).toEqual(first);
      expect(await store.renew(A, TTL)).toEqual([]);
      expect(await store.renew("wrk_stranger", TTL)).toEqual([]);
    });

    it("gives a released lane to another worker, under a higher epoch", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES)]);
      const before = await claimed(store, SES, A);
      await store.release(SES, B);
      expect(await store.claim(SES, B, TTL)).toMatchObject({ kind: "held" });
      await store.release(SES, A);
      expect(await claimed(store, SES, B)).toBeGreaterThan(before);
    });

    it("G24: lists the sessions with open runs that no worker drives", async () => {
      const { store } = opened();
      await add(store, "ses_idle", 0, [created("ses_idle")]);
      await add(store, "ses_done", 0, [created("ses_done"), accepted("run_1"), settled("run_1")]);
      await add(store, "ses_live", 0, [created("ses_live"), accepted("run_2"), ...started("run_2")]);
      await add(store, "ses_wait", 0, [created("ses_wait"), accepted("run_3")]);
      const unattended = async (limit: number) => [...(await store.unattended(limit))].sort();
      expect(await unattended(10)).toEqual(["ses_live", "ses_wait"]);
      expect(await store.unattended(1)).toHaveLength(1);
      await store.claim("ses_live", A, TTL);
      expect(await unattended(10)).toEqual(["ses_wait"]);
      expect(await unattended(1)).toEqual(["ses_wait"]);
      await store.release("ses_live", A);
      expect(await unattended(10)).toEqual(["ses_live", "ses_wait"]);
    });

    it("G24: lists a session that has only a running process, until that has an outcome", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES), accepted("run_1"), processRequested(SES, 1), settled("run_1")]);
      expect(await store.unattended(10)).toEqual([SES]);
      await store.claim(SES, A, TTL);
      expect(await store.unattended(10)).toEqual([]);
      await store.release(SES, A);
      await add(store, SES, 4, [processRequested(SES, 2), processSettled(SES, 1, completed)]);
      expect(await store.unattended(10)).toEqual([SES]);
      await add(store, SES, 6, [processSettled(SES, 2, { kind: "lost" })]);
      expect(await store.unattended(10)).toEqual([]);
    });

    it("G24: lists a session once, however much of it is open, and finds it behind attended ones", async () => {
      const { store } = opened();
      const sessions = Array.from({ length: 9 }, (_, index): SessionId => `ses_${index}`);
      for (const [index, id] of sessions.entries()) {
        // One third has runs only, one third processes only, one third both.
        const runs = index % 3 === 1 ? [] : [accepted(`run_${index}a`), accepted(`run_${index}b`)];
        const processes = index % 3 === 0 ? [] : [processRequested(id, 1), processRequested(id, 2)];
        await add(store, id, 0, [created(id), ...runs, ...processes]);
      }
      expect([...(await store.unattended(100))].sort()).toEqual(sessions);
      await store.claim("ses_0", A, TTL);
      expect(await store.unattended(2)).toHaveLength(2);
      for (const id of sessions.slice(0, 7)) await store.claim(id, A, TTL);
      expect([...(await store.unattended(2))].sort()).toEqual(sessions.slice(7));
      expect(await store.unattended(1)).toHaveLength(1);
    });
  });
}

function fencing({ opened }: Suite): void {
  describe("fencing", () => {
    it("G26: fences a driver whose lane another worker has, and accepts an append without an epoch", {
      meta: { id: "G26/old-driver-fenced" },
    }, async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES)]);
      const old = await claimed(store, SES, A);
      expect(await store.append(batch(SES, 1, [accepted("run_1")], { epoch: old }))).toMatchObject({
        kind: "appended",
      });
      await store.release(SES, A);
      const epoch = await claimed(store, SES, B);
      expect(await store.append(batch(SES, 2, started("run_1"), { epoch: old }))).toEqual({ kind: "fenced" });
      expect(await headOf(store, SES)).toBe(2);
      expect(await store.append(batch(SES, 2, started("run_1"), { epoch }))).toMatchObject({ kind: "appended" });
      expect(await store.append(batch(SES, 4, [accepted("run_2")]))).toMatchObject({ kind: "appended" });
    });

    it("G26: fences a driver that released its lane, and one that never had it", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES)]);
      expect(await store.append(batch(SES, 1, [accepted("run_1")], { epoch: 1 }))).toEqual({ kind: "fenced" });
      const epoch = await claimed(store, SES, A);
      await store.release(SES, A);
      expect(await store.append(batch(SES, 1, [accepted("run_1")], { epoch }))).toEqual({ kind: "fenced" });
    });

    it("fences before it compares the head, so that a driver without its lane stops instead of retrying", {
      meta: { id: "G26/fenced-before-head-check" },
    }, async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES)]);
      const old = await claimed(store, SES, A);
      await store.release(SES, A);
      await claimed(store, SES, B);
      expect(await store.append(batch(SES, 0, [accepted("run_1")], { epoch: old }))).toEqual({ kind: "fenced" });
    });
  });
}

function expiry({ opened }: Suite): void {
  describe("leases that run out", () => {
    it("G24: another worker can claim an expired lease, under a higher epoch", {
      meta: { id: "G24/expired-lease-taken-over" },
    }, async () => {
      const { store, pass } = opened();
      await add(store, SES, 0, [created(SES), accepted("run_1")]);
      const old = await claimed(store, SES, A);
      expect(await store.unattended(10)).toEqual([]);
      await pass(TTL + 1);
      expect(await store.unattended(10)).toEqual([SES]);
      expect(await claimed(store, SES, B)).toBeGreaterThan(old);
      expect(await store.append(batch(SES, 2, started("run_1"), { epoch: old }))).toEqual({ kind: "fenced" });
    });

    it("G24: a lease expires exactly at the end of its term", async () => {
      const { store, pass } = opened();
      await add(store, SES, 0, [created(SES), accepted("run_1")]);
      const old = await claimed(store, SES, A);
      await pass(TTL);
      expect(await store.unattended(10)).toEqual([SES]);
      expect(await claimed(store, SES, B)).toBeGreaterThan(old);
    });

    it("G26: renewing reports once which lanes another worker has claimed", async () => {
      const { store, pass } = opened();
      await add(store, SES, 0, [created(SES)]);
      await add(store, "ses_b", 0, [created("ses_b")]);
      await claimed(store, SES, A);
      await claimed(store, "ses_b", A);
      await pass(TTL + 1);
      await claimed(store, SES, B);
      expect(await store.renew(A, TTL)).toEqual([SES]);
      expect(await store.renew(A, TTL)).toEqual([]);
      expect(await store.claim("ses_b", B, TTL)).toMatchObject({ kind: "held", by: A });
      expect(await store.claim(SES, A, TTL)).toMatchObject({ kind: "held", by: B });
    });

    it("a renewed lease lasts a full term from the renewal", async () => {
      const { store, pass } = opened();
      await add(store, SES, 0, [created(SES)]);
      await claimed(store, SES, A);
      await pass(TTL - 100);
      await store.renew(A, TTL);
      await pass(TTL - 100);
      expect(await store.claim(SES, B, TTL)).toMatchObject({ kind: "held", by: A });
      await pass(101);
      expect(await store.claim(SES, B, TTL)).toMatchObject({ kind: "claimed" });
    });

    it("a driver with an expired lease can append until another worker claims the lane", {
      meta: { id: "G26/expired-lease-without-taker" },
    }, async () => {
      const { store, pass } = opened();
      await add(store, SES, 0, [created(SES)]);
      const epoch = await claimed(store, SES, A);
      await pass(TTL + 1);
      expect(await store.append(batch(SES, 1, [accepted("run_1")], { epoch }))).toMatchObject({ kind: "appended" });
    });
  });
}

async function claimed(store: Store, session: SessionId, worker: WorkerId): Promise<number> {
  const claim = await store.claim(session, worker, TTL);
  if (claim.kind !== "claimed") throw new Error(`${session} is held by ${claim.by}`);
  return claim.epoch;
}
