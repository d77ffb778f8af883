// The store suite: the rows of processes, and the changes to them that the store rejects.
import { describe, expect, it } from "vitest";
import type { Outcome } from "../../core/model/cancel.ts";
import {
  accepted,
  add,
  batch,
  completed,
  created,
  headOf,
  processRequested,
  processSettled,
  refusedAs,
  SES,
  settled,
} from "./facts.ts";
import type { Suite } from "./suite.ts";

export function processContract(suite: Suite): void {
  found(suite);
  guarded(suite);
}

function found({ opened }: Suite): void {
  describe("processes", () => {
    it("are found by id, running or ended", async () => {
      const { store } = opened();
      expect(await store.process("proc_a.1")).toBeUndefined();
      await add(store, SES, 0, [created(SES), processRequested(SES, 1)]);
      const row = { id: "proc_a.1", session: SES, requestedAt: 2 };
      expect(await store.process("proc_a.1")).toStrictEqual({ ...row, settledAt: undefined, outcome: undefined });
      const outcome: Outcome = { kind: "cancelled", reason: { kind: "user", note: "enough \ud800" }, abandoned: [] };
      await add(store, SES, 2, [processSettled(SES, 1, outcome)]);
      expect(await store.process("proc_a.1")).toStrictEqual({ ...row, settledAt: 3, outcome });
      expect(await store.process("proc_a.2")).toBeUndefined();
    });

    it("may start and end in one batch, several at once", async () => {
      const { store } = opened();
      await add(store, SES, 0, [
        created(SES),
        processRequested(SES, 1),
        processRequested(SES, 2),
        processSettled(SES, 1, { kind: "lost" }),
      ]);
      expect(await store.process("proc_a.1")).toMatchObject({ settledAt: 4, outcome: { kind: "lost" } });
      expect(await store.process("proc_a.2")).toMatchObject({ requestedAt: 3, outcome: undefined });
    });

    it("are listed newest first, in pages, for one session only", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES), processRequested(SES, 1)]);
      await add(store, SES, 2, [processRequested(SES, 2), processSettled(SES, 1, completed)]);
      await add(store, SES, 4, [processRequested(SES, 3)]);
      await add(store, "ses_b", 0, [created("ses_b"), processRequested("ses_b", 1)]);
      const ids = async (before: number, limit: number) =>
        (await store.processes(SES, { before, limit })).map((one) => `${one.id} ${one.outcome?.kind ?? "live"}`);
      expect(await ids(100, 10)).toEqual(["proc_a.3 live", "proc_a.2 live", "proc_a.1 completed"]);
      expect(await ids(100, 2)).toEqual(["proc_a.3 live", "proc_a.2 live"]);
      expect(await ids(3, 2)).toEqual(["proc_a.1 completed"]);
      expect(await ids(2, 2)).toEqual([]);
      expect(await store.processes("ses_b", { before: 100, limit: 10 })).toStrictEqual([
        { id: "proc_b.1", session: "ses_b", requestedAt: 2, settledAt: undefined, outcome: undefined },
      ]);
      expect(await store.processes("ses_none", { before: 100, limit: 10 })).toEqual([]);
    });
  });
}

function guarded({ opened }: Suite): void {
  describe("guarding processes", () => {
    it("rejects a second outcome of a process, and keeps the first", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES), processRequested(SES, 1), processSettled(SES, 1, { kind: "lost" })]);
      await refusedAs("internal", store.append(batch(SES, 3, [processSettled(SES, 1, completed)])));
      expect(await headOf(store, SES)).toBe(3);
      expect(await store.process("proc_a.1")).toMatchObject({ outcome: { kind: "lost" }, settledAt: 3 });
    });

    it("rejects a batch with two outcomes of a process, and records nothing of it", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES), processRequested(SES, 1)]);
      const twice = [accepted("run_1"), processSettled(SES, 1, completed), processSettled(SES, 1, completed)];
      await refusedAs("internal", store.append(batch(SES, 2, twice)));
      expect(await headOf(store, SES)).toBe(2);
      expect(await store.run("run_1")).toBeUndefined();
      expect(await store.process("proc_a.1")).toMatchObject({ outcome: undefined, settledAt: undefined });
    });

    it("rejects a second request of a process, over batches and within one", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES), processRequested(SES, 1), processSettled(SES, 1, completed)]);
      await refusedAs("internal", store.append(batch(SES, 3, [processRequested(SES, 1)])));
      await refusedAs("internal", store.append(batch(SES, 3, [processRequested(SES, 2), processRequested(SES, 2)])));
      expect(await headOf(store, SES)).toBe(3);
      expect(await store.process("proc_a.1")).toMatchObject({ requestedAt: 2, outcome: completed });
      expect(await store.process("proc_a.2")).toBeUndefined();
    });

    it("rejects the end of an unknown process, or of another session's process", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES), processRequested(SES, 1)]);
      await add(store, "ses_b", 0, [created("ses_b")]);
      await refusedAs("internal", store.append(batch(SES, 2, [processSettled(SES, 2, completed)])));
      await refusedAs("internal", store.append(batch("ses_b", 1, [processSettled(SES, 1, completed)])));
      expect(await store.process("proc_a.1")).toMatchObject({ session: SES, outcome: undefined });
      expect(await headOf(store, "ses_b")).toBe(1);
    });

    it("allows a run to end before its process, and a process before its run", async () => {
      const { store } = opened();
      await add(store, SES, 0, [created(SES), accepted("run_1"), processRequested(SES, 1), settled("run_1")]);
      expect(await store.process("proc_a.1")).toMatchObject({ outcome: undefined });
      await add(store, SES, 4, [accepted("run_2"), processSettled(SES, 1, completed)]);
      expect(await store.run("run_2")).toMatchObject({ phase: "waiting" });
      expect(await store.process("proc_a.1")).toMatchObject({ outcome: completed });
    });
  });
}
