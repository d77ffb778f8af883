// The store suite: the rows derived from events, and the changes to them that the store rejects.
import { describe, expect, it } from "vitest";
import type { Outcome } from "../../core/model/cancel.ts";
import type { SessionId } from "../../core/model/ids.ts";
import {
  accepted,
  add,
  batch,
  callSettled,
  created,
  headOf,
  processRequested,
  refusedAs,
  SES,
  settled,
  started,
} from "./facts.ts";
import type { Suite } from "./suite.ts";

export function rowContract(suite: Suite): void {
  found(suite);
  listed(suite);
  named(suite);
  guarded(suite);
}

function found({ opened }: Suite): void {
  describe("finding", () => {
    it("finds a run by its id, waiting, live or settled", async () => {
      const { store } = opened();
      expect(await store.run("run_1")).toBeUndefined();
      await add(store, SES, 0, [created(SES), accepted("run_1", { key: "k" })]);
      const row = { id: "run_1", session: SES, acceptedAt: 2, key: "k", content: "digest of k" };
      const open = { ...row, settledAt: undefined, outcome: undefined };
      expect(await store.run("run_1")).toStrictEqual({ ...open, phase: "waiting" });
      await add(store, SES, 2, started("run_1"));
      expect(await store.run("run_1")).toStrictEqual({ ...open, phase: "live" });
      const outcome: Outcome = { kind: "cancelled", reason: { kind: "user", note: "enough" }, abandoned: ["turn"] };
      await add(store, SES, 4, [settled("run_1", outcome)]);
      expect(await store.run("run_1")).toStrictEqual({ ...row, phase: "settled", settledAt: 5, outcome });
    });

    it("finds a run that was accepted and started at once, with all its fields", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES), accepted("run_1", { key: "k" }), ...started("run_1")]);
      const row = { id: "run_1", session: SES, acceptedAt: 2, key: "k", content: "digest of k", phase: "live" };
      expect(await store.run("run_1")).toStrictEqual({ ...row, settledAt: undefined, outcome: undefined });
    });

    it("G2: finds a run by its key, in its own session only", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES), accepted("run_1", { key: "k" })]);
      await add(store, "ses_b", 0, [created("ses_b"), accepted("run_2", { key: "k" }), accepted("run_3")]);
      expect(await store.run({ session: SES, key: "k" })).toMatchObject({ id: "run_1" });
      expect(await store.run({ session: "ses_b", key: "k" })).toMatchObject({ id: "run_2" });
      expect(await store.run({ session: SES, key: "other" })).toBeUndefined();
      expect(await store.run({ session: "ses_none", key: "k" })).toBeUndefined();
      expect(await store.run("run_3")).toMatchObject({ key: undefined, content: undefined });
    });

    it("finds a call once it has settled", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES), accepted("run_1"), ...started("run_1")]);
      expect(await store.call("call_1.1")).toBeUndefined();
      await add(store, SES, 4, [callSettled("run_1", 1, { kind: "lost" })]);
      const row = { id: "call_1.1", session: SES, settledAt: 5, outcome: { kind: "lost" } };
      expect(await store.call("call_1.1")).toStrictEqual(row);
    });
  });
}

function listed({ opened }: Suite): void {
  describe("listing", () => {
    it("lists the runs of a session newest first, in pages", async () => {
      const { store } = opened();
      await add(store, SES, 0, [
        created(SES),
        accepted("run_1"),
        accepted("run_2"),
        accepted("run_3"),
        settled("run_2"),
      ]);
      await add(store, "ses_b", 0, [created("ses_b"), accepted("run_9")]);
      const ids = async (before: number, limit: number) =>
        (await store.runs(SES, { before, limit })).map((run) => `${run.id} ${run.phase}`);
      expect(await ids(100, 10)).toEqual(["run_3 waiting", "run_2 settled", "run_1 waiting"]);
      expect(await ids(100, 2)).toEqual(["run_3 waiting", "run_2 settled"]);
      expect(await ids(3, 2)).toEqual(["run_1 waiting"]);
      expect(await ids(2, 2)).toEqual([]);
      await add(store, SES, 5, [...started("run_1"), settled("run_3")]);
      expect(await ids(100, 10)).toEqual(["run_3 settled", "run_2 settled", "run_1 live"]);
      expect(await store.runs("ses_none", { before: 100, limit: 10 })).toEqual([]);
    });

    it("lists sessions in the order of their creation, in pages", async () => {
      const { store } = opened();
      const at = 5_000;
      await store.append(batch("ses_z", 0, [created("ses_z", "Last letter", "/srv/a b/ü")], { at }));
      // The clock went backwards; the order of creation did not.
      await store.append(batch("ses_m", 0, [created("ses_m"), accepted("run_1")], { at: at - 1_000 }));
      await add(store, "ses_a", 0, [created("ses_a"), { type: "session.closed", reason: { kind: "user" } }]);
      const all = await store.sessions({ after: undefined, limit: 10 });
      const row = (id: SessionId, head: number, at: number) => ({ id, head, createdAt: at, updatedAt: at });
      expect(all).toStrictEqual([
        { ...row("ses_z", 1, 5_000), title: "Last letter", cwd: "/srv/a b/ü", phase: "open" },
        { ...row("ses_m", 2, 4_000), title: undefined, cwd: undefined, phase: "open" },
        { ...row("ses_a", 2, 1_000), title: undefined, cwd: undefined, phase: "closed" },
      ]);
      expect(await store.sessions({ after: undefined, limit: 2 })).toEqual(all.slice(0, 2));
      expect(await store.sessions({ after: "ses_z", limit: 1 })).toEqual(all.slice(1, 2));
      expect(await store.sessions({ after: "ses_a", limit: 10 })).toEqual([]);
      expect(await store.sessions({ after: "ses_none", limit: 10 })).toEqual([]);
      expect(await store.session("ses_m")).toStrictEqual(all[1]);
      expect(await store.session("ses_none")).toBeUndefined();
    });

    it("returns when the last event of a session was recorded", async () => {
      const { store } = opened();
      await store.append(batch(SES, 0, [created(SES)], { at: 1_000 }));
      await store.append(batch(SES, 1, [accepted("run_1")], { at: 7_000 }));
      expect(await store.session(SES)).toMatchObject({ createdAt: 1_000, updatedAt: 7_000 });
    });

    it("lists sessions newest first, in pages", async () => {
      const { store } = opened();
      for (const id of ["ses_z", "ses_m", "ses_x.1", "ses_a"] as const) await add(store, id, 0, [created(id)]);
      const newest = async (before: SessionId | undefined, limit: number, within = {}): Promise<readonly string[]> =>
        (await store.sessions({ order: "newest", before, limit, ...within })).map(({ id }) => id);
      expect(await newest(undefined, 10)).toEqual(["ses_a", "ses_x.1", "ses_m", "ses_z"]);
      expect(await newest(undefined, 2)).toEqual(["ses_a", "ses_x.1"]);
      expect(await newest("ses_x.1", 1)).toEqual(["ses_m"]);
      expect(await newest("ses_z", 10)).toEqual([]);
      expect(await newest("ses_none", 10)).toEqual([]);
      expect(await newest(undefined, 10, { tenant: "x" })).toEqual(["ses_x.1"]);
      expect(await newest("ses_a", 10, { tenant: "x" })).toEqual(["ses_x.1"]);
    });

    it("lists the sessions of one tenant, and no others", async () => {
      const { store } = opened();
      const ids = ["ses_a.2", "ses_ab.1", "ses_a.1", "ses_a", "ses_b.1", "ses_a.3", "ses_A.1"] as const;
      for (const id of ids) await add(store, id, 0, [created(id)]);
      const within = async (after: SessionId | undefined, limit: number): Promise<readonly string[]> =>
        (await store.sessions({ after, limit, tenant: "a" })).map(({ id }) => id);
      expect(await within(undefined, 10)).toEqual(["ses_a.2", "ses_a.1", "ses_a.3"]);
      expect(await within("ses_a.2", 1)).toEqual(["ses_a.1"]);
      expect(await within("ses_a.3", 10)).toEqual([]);
      expect((await store.sessions({ after: undefined, limit: 10 })).map(({ id }) => id)).toEqual(ids);
    });
  });
}

function named({ opened }: Suite): void {
  describe("finding ids by their prefix", () => {
    it("finds sessions, runs, settled calls and processes, running or ended", async () => {
      const { store } = opened();
      await add(store, "ses_b", 0, [created("ses_b"), accepted("run_b1"), ...started("run_b1")]);
      await add(store, "ses_b", 4, [callSettled("run_b1", 1, { kind: "lost" }), processRequested("ses_b", 1)]);
      await add(store, "ses_b-2", 0, [created("ses_b-2"), accepted("run_b"), settled("run_b")]);
      const ids = async (prefix: string): Promise<readonly string[]> => (await store.ids({ prefix, limit: 9 })).ids;
      expect(await ids("ses_b")).toEqual(["ses_b", "ses_b-2"]);
      expect(await ids("ses_b-")).toEqual(["ses_b-2"]);
      expect(await ids("run_")).toEqual(["run_b", "run_b1"]);
      expect(await ids("call_b1.1")).toEqual(["call_b1.1"]);
      expect(await ids("proc_b.")).toEqual(["proc_b.1"]);
      expect(await ids("ses_B")).toEqual([]);
      expect(await ids("ses_%")).toEqual([]);
      expect(await ids("")).toEqual(["call_b1.1", "proc_b.1", "run_b", "run_b1", "ses_b", "ses_b-2"]);
    });

    it("reports whether there may be more matches, and lists an exact match first", async () => {
      const { store } = opened();
      for (const id of ["ses_a3", "ses_a1", "ses_a", "ses_a2"] as const) await add(store, id, 0, [created(id)]);
      expect(await store.ids({ prefix: "ses_a", limit: 2 })).toEqual({ ids: ["ses_a", "ses_a1"], complete: false });
      expect(await store.ids({ prefix: "ses_a", limit: 3 })).toMatchObject({ complete: false });
      expect(await store.ids({ prefix: "ses_a", limit: 4 })).toMatchObject({ complete: true });
      expect(await store.ids({ prefix: "ses_a3", limit: 1 })).toEqual({ ids: ["ses_a3"], complete: true });
    });

    it("G35: finds no ids of another tenant", async () => {
      const { store } = opened();
      for (const id of ["ses_x.1", "ses_x", "ses_y.1"] as const)
        await add(store, id, 0, [created(id), accepted(`run_${id.slice(4)}`), processRequested(id, 1)]);
      const ids = async (prefix: string): Promise<readonly string[]> =>
        (await store.ids({ prefix, limit: 9, tenant: "x" })).ids;
      expect(await ids("ses_")).toEqual(["ses_x.1"]);
      expect(await ids("run_")).toEqual(["run_x.1"]);
      expect(await ids("proc_x.1")).toEqual(["proc_x.1.1"]);
      expect(await ids("ses_y")).toEqual([]);
      expect(await ids("")).toEqual(["proc_x.1.1", "run_x.1", "ses_x.1"]);
    });
  });
}

function guarded({ opened }: Suite): void {
  describe("guarding", () => {
    it("G4: rejects a second live run in a session, and records nothing of it", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES), accepted("run_1"), accepted("run_2"), ...started("run_1")]);
      await refusedAs("internal", store.append(batch(SES, 5, started("run_2"))));
      expect(await headOf(store, SES)).toBe(5);
      expect(await store.run("run_2")).toMatchObject({ phase: "waiting" });
      await add(store, SES, 5, [settled("run_1"), ...started("run_2")]);
    });

    it("G4: still rejects a second live run after the end of a run that had not started", async () => {
      const { store } = opened();
      const waiting = [accepted("run_1"), accepted("run_2"), accepted("run_3")];
      await add(store, SES, 0, [created(SES), ...waiting, ...started("run_1"), settled("run_2")]);
      await refusedAs("internal", store.append(batch(SES, 7, started("run_3"))));
      await refusedAs("internal", store.append(batch(SES, 7, [settled("run_3"), ...started("run_3")])));
      expect(await headOf(store, SES)).toBe(7);
    });

    it("G4: rejects the start of a run that is live already, over batches and within one", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES), accepted("run_1"), ...started("run_1"), accepted("run_2")]);
      await refusedAs("internal", store.append(batch(SES, 5, started("run_1"))));
      await add(store, SES, 5, [settled("run_1")]);
      await refusedAs("internal", store.append(batch(SES, 6, [...started("run_2"), ...started("run_2")])));
      const atOnce = [accepted("run_3"), ...started("run_3"), ...started("run_3")];
      await refusedAs("internal", store.append(batch(SES, 6, atOnce)));
      expect(await headOf(store, SES)).toBe(6);
      expect(await store.run("run_2")).toMatchObject({ phase: "waiting" });
    });

    it("G4: allows one live run in every session", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES), accepted("run_1"), ...started("run_1")]);
      await add(store, "ses_b", 0, [created("ses_b"), accepted("run_2"), ...started("run_2")]);
    });

    it("G14: rejects a second outcome of a run, and keeps the first", {
      meta: { id: "G14/second-outcome-refused" },
    }, async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES), accepted("run_1"), settled("run_1", { kind: "lost" })]);
      await refusedAs("internal", store.append(batch(SES, 3, [settled("run_1")])));
      await refusedAs("internal", store.append(batch(SES, 3, started("run_1"))));
      expect(await headOf(store, SES)).toBe(3);
      expect(await store.run("run_1")).toMatchObject({ outcome: { kind: "lost" }, settledAt: 3 });
    });

    it("G14: rejects a batch with two outcomes of a run, and an outcome of an unknown run", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES), accepted("run_1")]);
      await add(store, "ses_b", 0, [created("ses_b")]);
      await refusedAs("internal", store.append(batch(SES, 2, [settled("run_1"), settled("run_1")])));
      await refusedAs("internal", store.append(batch(SES, 2, [settled("run_none")])));
      await refusedAs("internal", store.append(batch("ses_b", 1, [settled("run_1")])));
      await refusedAs("internal", store.append(batch("ses_b", 1, started("run_1"))));
      expect(await store.run("run_1")).toMatchObject({ phase: "waiting" });
    });

    it("G2: returns every taken key of a batch with its run, and writes nothing of the batch", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES), accepted("run_1", { key: "k" }), settled("run_1")]);
      await add(store, SES, 3, [accepted("run_2", { key: "l" })]);
      await add(store, "ses_b", 0, [created("ses_b")]);
      const again = [
        ...[accepted("run_3", { key: "l" }), accepted("run_4", { key: "free" })],
        ...[accepted("run_5"), accepted("run_6", { key: "k" })],
      ];
      // Sent together, so that a store that groups appends has both in one commit.
      const [taken, other] = await Promise.all([
        store.append(batch(SES, 4, again)),
        store.append(batch("ses_b", 1, [accepted("run_7", { key: "k" })])),
      ]);
      expect(taken).toEqual({
        kind: "taken",
        runs: [
          { key: "l", runId: "run_2", acceptedAt: 4, content: "digest of l" },
          { key: "k", runId: "run_1", acceptedAt: 2, content: "digest of k" },
        ],
      });
      expect(other).toEqual({ kind: "appended", head: 2 });
      expect(await store.run("run_4")).toBeUndefined();
      expect(await headOf(store, SES)).toBe(4);
      // A stale head is reported first: its decision may have to be made again without these keys.
      expect(await store.append(batch(SES, 3, again))).toEqual({ kind: "moved", head: 4 });
    });

    it("G2: rejects two runs under one key in one batch", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES), accepted("run_1", { key: "k" }), settled("run_1")]);
      const twice = [accepted("run_2", { key: "x" }), accepted("run_3", { key: "x" })];
      await refusedAs("internal", store.append(batch(SES, 3, twice)));
      expect(await store.run("run_2")).toBeUndefined();
      expect(await headOf(store, SES)).toBe(3);
    });

    it("G2: accepts several runs with different keys at once, and none of them twice", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES)]);
      await refusedAs("internal", store.append(batch(SES, 1, [accepted("run_1"), accepted("run_1")])));
      await add(store, SES, 1, [accepted("run_1", { key: "k" }), accepted("run_2", { key: "l" }), accepted("run_3")]);
      expect(await store.run({ session: SES, key: "l" })).toMatchObject({ id: "run_2" });
      await add(store, "ses_b", 0, [created("ses_b")]);
      await refusedAs("internal", store.append(batch("ses_b", 1, [accepted("run_1")])));
    });

    it("accepts the outcomes of several calls at once, and none of them twice", async () => {
      const { store } = opened();
      const lost = { kind: "lost" } as const;
      await add(store, SES, 0, [created(SES), accepted("run_1")]);
      const twice = [callSettled("run_1", 1, lost), callSettled("run_1", 1, lost)];
      await refusedAs("internal", store.append(batch(SES, 2, twice)));
      await add(store, SES, 2, [callSettled("run_1", 1, lost), callSettled("run_1", 2, lost)]);
      expect(await store.call("call_1.2")).toMatchObject({ settledAt: 4 });
    });

    it("rejects a second creation of a session, and a second outcome of a call", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES), accepted("run_1"), callSettled("run_1", 1, { kind: "lost" })]);
      await refusedAs("internal", store.append(batch(SES, 3, [created(SES)])));
      await refusedAs("internal", store.append(batch(SES, 3, [callSettled("run_1", 1, { kind: "lost" })])));
      expect(await headOf(store, SES)).toBe(3);
    });
  });
}
