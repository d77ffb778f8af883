// The part of the contract of a BelayControl that is about stopping.
import { describe, expect, test } from "vitest";
import type { RunControl } from "../../src/ports/control.ts";
import { factsOf, type Open, staged } from "./control-fixture.ts";

const CANCELLED = { kind: "cancelled", reason: { kind: "user" } };

function at<T>(list: readonly T[], index: number): T {
  const one = list[index];
  if (one === undefined) throw new Error(`There is no ${index} of ${list.length}.`);
  return one;
}

export function controlContractStops(name: string, open: Open): void {
  describe(`${name}: stopping`, () => {
    test("G10: a live run is stopped, and every later cancel gets a true receipt", {
      meta: { id: "G10/every-later-cancel-answered" },
    }, async () => {
      const { agent, session, control } = await staged(open);
      const run = session.prompt("hello");
      const turn = await agent.nextTurn();
      await run.accepted;
      const receipt = await run.cancel({ reason: "enough" });
      expect(receipt).toMatchObject({ kind: "stopping", first: true });
      expect(await control.cancel(run.id)).toMatchObject({ kind: "stopping", first: false });
      await turn.cancelled;
      turn.endCancelled();
      const outcome = await run.outcome;
      expect(outcome).toMatchObject({ kind: "cancelled", reason: { kind: "user", note: "enough" } });
      expect(await run.cancel()).toMatchObject({ kind: "settled", outcome });
      expect(await control.cancel("run_nobody")).toEqual({ kind: "unknown" });
      expect(await session.cancel()).toEqual({ kind: "idle", runs: [] });
    });

    test("G7: a reason that is too long is cut and marked, and the stop counts", async () => {
      const { agent, session, control } = await staged(open);
      const reason = "x".repeat(3_000_000);
      const stops = [
        (run: RunControl) => run.cancel({ reason }),
        () => session.cancel({ reason: { kind: "user", note: reason } }),
        () => control.cancelAll({ reason }),
      ];
      for (const stop of stops) {
        const run = session.prompt("hello");
        const turn = await agent.nextTurn();
        await run.accepted;
        await stop(run);
        await turn.cancelled;
        turn.endCancelled();
        const outcome = await run.outcome;
        const note = outcome.kind === "cancelled" && "note" in outcome.reason ? outcome.reason.note : "";
        expect(note).toMatch(/^x+ … \[cut\]$/);
        expect(note).toHaveLength(4_096);
      }
    });

    test("a cancel waits for the end if it is asked to, and says if that did not come in time", async () => {
      const { agent, session } = await staged(open);
      const hurried = session.prompt("hello");
      const first = await agent.nextTurn();
      await hurried.accepted;
      const receipt = await hurried.cancel({ waitMs: 0 });
      expect(receipt).toMatchObject({ kind: "stopping", ended: { kind: "limit", waitMs: 0 } });
      first.endCancelled();
      const run = session.prompt("again");
      const turn = await agent.nextTurn();
      const waiting = run.cancel({ waitMs: 60_000 });
      await turn.cancelled;
      turn.endCancelled();
      expect(await waiting).toMatchObject({ ended: { kind: "settled", outcome: CANCELLED } });
    });

    test("G7: a cancel in the tick of its prompt covers it, and no prompt that follows", async () => {
      const { agent, session } = await staged(open);
      const before = session.prompt("before");
      const cancelled = before.cancel();
      const after = session.prompt("after");
      expect(["withdrawn", "stopping"]).toContain((await cancelled).kind);
      const turn = await agent.nextTurn();
      if (turn.given.prompt.text === "before") {
        await turn.cancelled;
        turn.endCancelled();
        (await agent.nextTurn()).complete();
      } else turn.complete();
      expect(await before.outcome).toMatchObject(CANCELLED);
      expect(await after.outcome).toEqual({ kind: "completed" });
    });

    test("G7: a cancel of a session covers what was prompted before it in its tick, and nothing after", async () => {
      const { agent, session } = await staged(open);
      const before = [session.prompt("before"), session.prompt("before")];
      const cancelled = session.cancel({ reason: "all of it" });
      const after = session.prompt("after");
      // Whichever of them had begun is told to stop.
      const ended = (async () => {
        for (;;) {
          const turn = await agent.nextTurn();
          if (turn.given.prompt.text === "after") return turn.complete();
          await turn.cancelled;
          turn.endCancelled();
        }
      })();
      const receipt = await cancelled;
      const ids = await Promise.all(before.map(async (run) => (await run.accepted).runId));
      // What had not arrived is named by its key.
      const late = "prompts" in receipt ? (receipt.prompts ?? []) : [];
      expect(receipt.runs.length + late.length).toBe(2);
      for (const { runId } of receipt.runs) expect(ids).toContain(runId);
      for (const run of before) expect(await run.outcome).toMatchObject(CANCELLED);
      await ended;
      expect(await after.outcome).toEqual({ kind: "completed" });
    });

    test("G9: a call is stopped alone, and its run continues", async () => {
      const { agent, session, control } = await staged(open);
      const run = session.prompt("hello");
      const turn = await agent.nextTurn();
      const [one, other] = [turn.call("one"), turn.call("other")];
      const live = await one.begun;
      await other.begun;
      live.signal.addEventListener("abort", () => one.fail(live.signal.reason));
      const receipt = await control.cancel(live.callId, { reason: "not this", remind: false });
      expect(receipt).toMatchObject({ kind: "stopping", ended: { kind: "settled", outcome: CANCELLED } });
      expect(await one.result).toMatchObject(CANCELLED);
      other.complete("fine");
      expect(await other.result).toMatchObject({ kind: "completed", value: "fine" });
      turn.complete();
      expect(await run.outcome).toEqual({ kind: "completed" });
      expect(await control.cancel(live.callId)).toMatchObject({ kind: "settled", outcome: CANCELLED });
    });

    test("a question is withdrawn, and the code that waits for it continues", async () => {
      const { agent, session, control } = await staged(open);
      session.prompt("hello");
      const turn = await agent.nextTurn();
      const asked = turn.given.ask({ text: "Really?" });
      await expect.poll(async () => (await session.questions()).length).toBe(1);
      const [question] = await session.questions();
      await control.cancel(question?.id ?? "", { reason: "never mind" });
      expect(await asked).toMatchObject({ kind: "withdrawn" });
      turn.complete();
    });

    test("G5: an interrupt stops the live run and goes before the queue", async () => {
      const { agent, session } = await staged(open);
      const live = session.prompt("live");
      const turn = await agent.nextTurn();
      const queued = session.prompt("queued");
      const urgent = session.prompt("urgent", { delivery: "interrupt" });
      await turn.cancelled;
      turn.endCancelled();
      for (const text of ["urgent", "queued"]) {
        const next = await agent.nextTurn();
        expect(next.given.prompt.text).toBe(text);
        next.complete();
      }
      expect(await live.outcome).toMatchObject({ kind: "cancelled", reason: { kind: "superseded", by: urgent.id } });
      expect(await queued.outcome).toEqual({ kind: "completed" });
    });

    test("G40: while seven runs are followed, every stop arrives", async () => {
      const { agent, control } = await staged(open);
      const followed = [];
      for (let count = 0; count < 7; count += 1) {
        const session = await control.createSession();
        const run = session.prompt("hello", { key: "k" });
        const turn = await agent.nextTurn();
        const events = run[Symbol.asyncIterator]();
        void run.outcome;
        await events.next();
        const queued = session.prompt("later");
        await queued.accepted;
        followed.push({ session, run, turn, events, queued });
      }
      type Followed = (typeof followed)[number];
      const stops: ((one: Followed) => Promise<unknown>)[] = [
        ({ run }) => control.cancel(run.id),
        ({ run }) => run.cancel(),
        ({ session }) => session.cancelPrompt("k"),
        ({ session, queued }) => session.queue.withdraw(queued.id),
        ({ session }) => session.cancel(),
        ({ session }) => session.close(),
        () => control.cancelAll(),
      ];
      for (const [index, stop] of stops.entries()) await expect(stop(at(followed, index))).resolves.toBeDefined();
      for (const { turn, run } of followed) {
        turn.endCancelled();
        expect(await run.outcome).toMatchObject({ kind: "cancelled" });
      }
      expect(await at(followed, 0).session.delete()).toBeDefined();
      for (const { events } of followed) await events.return?.(undefined);
    });

    test("the same cancel under the same key is the same answer, and touches nothing newer", async () => {
      const { agent, session } = await staged(open);
      const first = session.prompt("first");
      const turn = await agent.nextTurn();
      const receipt = await session.cancel({ key: "stop" });
      expect(receipt).toMatchObject({ kind: "stopping", runs: [{ receipt: { kind: "stopping", first: true } }] });
      turn.endCancelled();
      await first.outcome;
      const newer = session.prompt("newer");
      const next = await agent.nextTurn();
      expect(await session.cancel({ key: "stop" })).toEqual(receipt);
      next.complete();
      expect(await newer.outcome).toEqual({ kind: "completed" });
    });

    test("a prompt is stopped by its key, even without a handle", async () => {
      const { agent, session, control } = await staged(open);
      const run = session.prompt("hello", { key: "mine" });
      const turn = await agent.nextTurn();
      await run.accepted;
      const receipt = await control.session(session.id).cancelPrompt("mine", { reason: "no" });
      expect(receipt).toMatchObject({ kind: "stopping", first: true, runId: run.id });
      turn.endCancelled();
      expect(await run.outcome).toMatchObject(CANCELLED);
      expect(await session.cancelPrompt("other")).toMatchObject({ kind: "unknown" });
    });

    test("everything is stopped at once: what was prompted before, in every session, and nothing after", async () => {
      const { agent, session, control } = await staged(open);
      const other = await control.createSession();
      const runs = [session.prompt("a"), other.prompt("b")];
      const turns = [await agent.nextTurn(), await agent.nextTurn()];
      const queued = session.prompt("c");
      await queued.accepted;
      const covered = control.cancelAll({ reason: "all", waitMs: 60_000 });
      const after = other.prompt("after");
      for (const turn of turns) {
        await turn.cancelled;
        turn.endCancelled();
      }
      const receipts = await covered;
      expect(receipts.map(({ sessionId }) => sessionId).toSorted()).toEqual([session.id, other.id].toSorted());
      const ended = receipts.flatMap(({ receipt }) => receipt.runs.map((one) => one.receipt));
      expect(ended.filter(({ kind }) => kind === "withdrawn")).toHaveLength(1);
      const settled = { kind: "stopping", ended: { kind: "settled", outcome: CANCELLED } };
      expect(ended.filter(({ kind }) => kind === "stopping")).toMatchObject([settled, settled]);
      for (const run of [...runs, queued]) expect(await run.outcome).toMatchObject(CANCELLED);
      const last = await agent.nextTurn();
      expect(last.given.prompt.text).toBe("after");
      last.complete();
      expect(await after.outcome).toEqual({ kind: "completed" });
    });

    test("closing a session stops everything and keeps its log", async () => {
      const { agent, session } = await staged(open);
      const run = session.prompt("hello");
      const turn = await agent.nextTurn();
      expect(await session.close({ reason: "done here" })).toMatchObject({ kind: "stopping" });
      await turn.cancelled;
      turn.endCancelled();
      expect(await run.outcome).toMatchObject({ kind: "cancelled" });
      expect((await factsOf(run)).at(-1)?.type).toBe("run.settled");
    });

    test("G9: a process is listed, read, written to and stopped, and its owner continues", async () => {
      const { agent, session, control } = await staged(open);
      const run = session.prompt("hello");
      const turn = await agent.nextTurn();
      const started = turn.call("start", null, async ({ processes }) => {
        const one = await processes.start("echo begun; read line; echo heard $line; read line", { stdin: "open" });
        return one.id;
      });
      const result = await started.result;
      const id = result.kind === "completed" ? String(result.value) : "";
      expect((await session.processes.list()).map((one) => one.id)).toEqual([id]);
      const found = await session.processes.get(id);
      expect(found).toMatchObject({ id, sessionId: session.id, info: { phase: "running" } });
      let said = "";
      const heard = (async () => {
        for await (const page of found.follow()) said += page.text;
      })();
      await found.write("you\n");
      await expect.poll(() => said).toBe("begun\nheard you\n");
      expect(await found.read({ offset: 6 })).toMatchObject({ from: 6, text: "heard you\n", missing: 0 });
      expect(await found.wait({ limitMs: 0 })).toBeUndefined();
      expect(await control.cancel(id, { reason: "enough" })).toMatchObject({
        ...{ kind: "stopping", first: true, ended: { kind: "settled", outcome: CANCELLED } },
      });
      expect(await found.wait()).toMatchObject({ processId: id, outcome: CANCELLED });
      await heard;
      expect(await session.processes.history()).toMatchObject([{ id, outcome: CANCELLED }]);
      expect(await found.cancel()).toMatchObject({ kind: "settled", outcome: CANCELLED });
      turn.complete();
      expect(await run.outcome).toEqual({ kind: "completed" });
    });
  });
}
