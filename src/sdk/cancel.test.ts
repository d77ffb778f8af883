// Cancelling through the library: what is covered, what the receipts say, and the outcomes.
import { describe, expect, test } from "vitest";
import { deaf, gate, openTestBelay, untilAborted, waits } from "../../test/fixtures/belay.ts";
import { ControlError } from "../core/errors.ts";
import type { Json } from "../core/model/prompt.ts";

const user = { kind: "user" } as const;
const cancelled = { kind: "cancelled", reason: user } as const;

describe("a cancel of a session covers what was accepted before, and nothing after", () => {
  test("G7: of prompts and a cancel in one tick, those before it are covered, and the one after it is not", {
    meta: { id: "G7/cancel-covers-only-the-past" },
  }, async () => {
    const { belay, begun } = await openTestBelay({ first: waits, second: waits });
    const session = await belay.createSession();
    const first = session.prompt("first");
    const second = session.prompt("second");
    const receipt = session.cancel();
    const third = session.prompt("third");
    const withdrawn = { kind: "withdrawn" };
    expect(await receipt).toEqual({
      kind: "withdrawn",
      runs: [first, second].map(({ id: runId }) => ({ runId, receipt: withdrawn })),
    });
    expect(await first.outcome).toEqual(cancelled);
    expect(await second.outcome).toEqual(cancelled);
    expect(await third.outcome).toEqual({ kind: "completed" });
    expect(begun).toEqual(["third"]);
  });

  test("G7: a cancel does not affect a later prompt of the same tick", {
    meta: { id: "G7/cancel-before-prompt-same-tick" },
  }, async () => {
    const { belay } = await openTestBelay();
    const session = await belay.createSession();
    const receipt = session.cancel();
    const run = session.prompt("after");
    expect(await receipt).toEqual({ kind: "idle", runs: [] });
    expect(await run.outcome).toEqual({ kind: "completed" });
  });

  test("G7: a cancel of an idle session changes nothing, and appends nothing to the log", {
    meta: { id: "G7/idle-cancel-changes-nothing" },
  }, async () => {
    const { belay } = await openTestBelay();
    const session = await belay.createSession();
    const before = (await session.explain()).asOf;
    expect(await session.cancel()).toEqual({ kind: "idle", runs: [] });
    expect((await session.explain()).asOf).toBe(before);
    expect(await session.prompt("next").outcome).toEqual({ kind: "completed" });
  });

  test("G7: works by handle, by run id and by the caller's key, before the acceptance", async () => {
    const { belay, begun } = await openTestBelay({ a: waits, b: waits, c: waits });
    const session = await belay.createSession();
    const byHandle = session.prompt("a");
    const handled = byHandle.cancel();
    const byId = session.prompt("b");
    const identified = belay.cancel(byId.id);
    const byKey = session.prompt("c", { key: "mine" });
    const keyed = session.cancelPrompt("mine");
    for (const run of [byHandle, byId, byKey]) expect(await run.outcome).toEqual(cancelled);
    for (const receipt of [handled, identified]) expect((await receipt).kind).toMatch(/stopping|withdrawn/);
    expect(await keyed).toMatchObject({ runId: byKey.id });
    expect(begun).toEqual([]);
  });

  test("G3, G10: the handle of a prompt that was refused, because its key has another run, stops nothing", async () => {
    const { belay, began } = await openTestBelay({ live: waits });
    const session = await belay.createSession();
    const run = session.prompt("live", { key: "k" });
    const inOneTick = session.prompt("other", { key: "k" });
    const early = inOneTick.cancel({ reason: "not this one" });
    await began("live");
    await expect(inOneTick.accepted).rejects.toMatchObject({ code: "conflict" });
    expect(await early).toEqual({ kind: "unknown" });
    expect(await inOneTick.cancel()).toEqual({ kind: "unknown" });
    expect((await run.row()).outcome).toBeUndefined();
    // The same request again is the same run, and stops it.
    expect(await session.prompt("live", { key: "k" }).cancel()).toMatchObject({ kind: "stopping", first: true });
    expect(await run.outcome).toEqual(cancelled);
  });

  test("G2, G10: the handle of a repeated prompt stops the first run, even if the stop has a key", async () => {
    const { belay, began } = await openTestBelay({ live: waits });
    const session = await belay.createSession();
    const run = session.prompt("live", { key: "k" });
    await began("live");
    const again = session.prompt("live", { key: "k" });
    const [first, second] = [again.cancel({ key: "stop" }), again.cancel({ key: "stop" })];
    expect(await first).toMatchObject({ kind: "stopping", first: true });
    expect(await second).toEqual(await first);
    expect(await run.outcome).toEqual(cancelled);
  });

  test.each([-1, Number.NaN, 0.5, "soon"])(
    "G3: a cancel with a `waitMs` of %s is refused, and stops nothing",
    async (ms) => {
      const { belay, began } = await openTestBelay({ live: waits });
      const session = await belay.createSession();
      const run = session.prompt("live");
      await began("live");
      const waitMs = ms as number;
      const stops = [
        run.cancel({ waitMs }),
        belay.cancel(run.id, { waitMs }),
        belay.cancel("run_none", { waitMs }),
        session.cancel({ waitMs }),
        belay.cancelAll({ waitMs }),
        belay.cancel(`call_${run.id.slice(4)}.1`, { waitMs }),
        belay.cancel(`proc_${session.id.slice(4)}.1`, { waitMs }),
      ];
      for (const stop of stops) await expect(stop).rejects.toMatchObject({ code: "invalid" });
      expect((await session.explain()).busy).toBe(true);
      expect((await session.explain()).live).not.toHaveProperty("stopping");
      await belay.close({ mode: "cancel" });
    },
  );

  test("G8: a cancelled session gives each covered run its own outcome, including those that never started", {
    meta: { id: "G8/each-covered-run-own-outcome" },
  }, async () => {
    const { belay, began } = await openTestBelay({ live: waits });
    const session = await belay.createSession();
    const runs = [session.prompt("live"), session.prompt("queued 1"), session.prompt("queued 2")];
    await began("live");
    const receipt = await session.cancel({ reason: "enough" });
    expect(receipt.runs.map((covered) => covered.receipt.kind)).toEqual(["stopping", "withdrawn", "withdrawn"]);
    for (const run of runs) {
      expect(await run.outcome).toEqual({ kind: "cancelled", reason: { kind: "user", note: "enough" } });
    }
  });

  test("G10: a repeated keyed cancel of one run returns the same receipt, even when the run has ended", async () => {
    const { belay, began } = await openTestBelay({ live: waits });
    const session = await belay.createSession();
    const live = session.prompt("live");
    await began("live");
    const queued = session.prompt("queued");
    await queued.accepted;
    const withdrawn = await belay.cancel(queued.id, { key: "c1" });
    expect(withdrawn).toEqual({ kind: "withdrawn" });
    const stopping = await belay.cancel(live.id, { key: "c2" });
    await live.outcome;
    const before = (await session.explain()).asOf;
    expect(await belay.cancel(queued.id, { key: "c1" })).toEqual(withdrawn);
    expect(await belay.cancel(live.id, { key: "c2" })).toEqual(stopping);
    await expect(belay.cancel(live.id, { key: "c2", reason: "other" })).rejects.toMatchObject({ code: "conflict" });
    await expect(belay.cancel(live.id, { key: "c1" })).rejects.toMatchObject({ code: "conflict" });
    expect(await belay.cancel(live.id, { key: "c3" })).toEqual({ kind: "settled", outcome: cancelled });
    expect((await session.explain()).asOf).toBe(before);
  });

  test("a repeated keyed cancel returns the same receipt and stops nothing newer", async () => {
    const { belay, began } = await openTestBelay({ live: waits });
    const session = await belay.createSession();
    expect(await session.cancel({ key: "c1" })).toEqual({ kind: "idle", runs: [] });
    const run = session.prompt("live");
    await began("live");
    expect(await session.cancel({ key: "c1" })).toEqual({ kind: "idle", runs: [] });
    await expect(session.cancel({ key: "c1", reason: "other" })).rejects.toMatchObject({ code: "conflict" });
    expect((await session.cancel()).kind).toBe("stopping");
    expect((await run.outcome).kind).toBe("cancelled");
  });
});

describe("receipts", () => {
  test("G10: are `stopping`, first or not, then `settled`, and the first reason is kept", {
    meta: { id: "G10/first-reason-kept" },
  }, async () => {
    const { belay, began } = await openTestBelay({ live: deaf });
    const session = await belay.createSession();
    const run = session.prompt("live");
    await began("live");
    const [first, second] = await Promise.all([run.cancel({ reason: "one" }), run.cancel({ reason: "two" })]);
    expect(first).toMatchObject({ kind: "stopping", first: true });
    expect(second).toMatchObject({ kind: "stopping", first: false });
    const outcome = await run.outcome;
    expect(outcome).toMatchObject({ kind: "cancelled", reason: { kind: "user", note: "one" } });
    expect(await run.cancel()).toEqual({ kind: "settled", outcome });
  });

  test("G10: are `withdrawn` for a run that had not started", async () => {
    const { belay, began, begun } = await openTestBelay({ live: waits });
    const session = await belay.createSession();
    const live = session.prompt("live");
    const queued = session.prompt("queued");
    await began("live");
    expect(await queued.cancel()).toEqual({ kind: "withdrawn" });
    expect(await queued.outcome).toEqual(cancelled);
    await live.cancel({ waitMs: 1000 });
    expect(begun).toEqual(["live"]);
  });

  test("G10: are `unknown` for an unknown id", async () => {
    const { belay } = await openTestBelay();
    expect(await belay.cancel("run_never")).toEqual({ kind: "unknown" });
    expect(await belay.cancel("call_never.1")).toEqual({ kind: "unknown" });
    expect(await belay.cancel("ses_never")).toEqual({ kind: "unknown", runs: [] });
  });

  test("G10: of an old id never stop a later run", {
    meta: { id: "G10/stale-id-hits-nothing" },
  }, async () => {
    const { belay, began } = await openTestBelay({ second: waits });
    const session = await belay.createSession();
    const first = session.prompt("first");
    await first.outcome;
    const second = session.prompt("second");
    await began("second");
    expect(await first.cancel()).toEqual({ kind: "settled", outcome: { kind: "completed" } });
    expect((await session.explain()).live?.phase).toBe("running");
    await second.cancel({ waitMs: 1000 });
  });

  test("G12: report whether the run settled before the limit", async () => {
    const { belay, began } = await openTestBelay({ live: deaf }, { graceMs: 30 });
    const session = await belay.createSession();
    const run = session.prompt("live");
    await began("live");
    expect(await run.cancel({ waitMs: 0 })).toMatchObject({ ended: { kind: "limit", waitMs: 0 } });
    expect(await run.cancel({ waitMs: 5000 })).toMatchObject({
      ended: { kind: "settled", outcome: { kind: "cancelled" } },
    });
  });
});

describe("one call", () => {
  test("G9: cancelling a call does not affect its run and its siblings", async () => {
    const sibling = gate();
    const results: Json[] = [];
    const { belay } = await openTestBelay({
      work: async (turn) => {
        const [stopped, other] = await Promise.all([
          turn.call("stopped", null, (call) => {
            call.partial("half");
            return untilAborted(call.signal);
          }),
          turn.call("sibling", null, async () => {
            await sibling.passed;
            return "whole";
          }),
        ]);
        results.push({ ...stopped } as unknown as Json, { ...other } as unknown as Json);
        return "went on";
      },
    });
    const session = await belay.createSession();
    const run = session.prompt("work");
    for await (const event of run) {
      if (event.type === "call.requested" && event.name === "sibling") {
        const [call] = (await session.explain()).live?.calls ?? [];
        expect(await belay.cancel(call?.callId ?? "", { reason: "not that one" })).toMatchObject({ kind: "stopping" });
        sibling.open();
      }
    }
    expect(await run.outcome).toEqual({ kind: "completed" });
    expect(results).toMatchObject([
      { kind: "cancelled", reason: { note: "not that one" }, partial: "half" },
      { kind: "completed", value: "whole" },
    ]);
  });

  test("G15: a call that finishes although it was cancelled is completed", async () => {
    const asked = gate();
    const { belay } = await openTestBelay({
      work: async (turn) => {
        const result = await turn.call("stubborn", null, async ({ signal }) => {
          asked.open();
          await untilAborted(signal).catch(() => {});
          return "finished anyway";
        });
        return JSON.stringify(result);
      },
    });
    const session = await belay.createSession();
    const run = session.prompt("work");
    await asked.passed;
    const [call] = (await session.explain()).live?.calls ?? [];
    await belay.cancel(call?.callId ?? "");
    expect(await run.text()).toContain("finished anyway");
    expect(await belay.cancel(call?.callId ?? "")).toEqual({
      ...{ kind: "settled", outcome: { kind: "completed" }, tool: "stubborn" },
    });
  });

  test("a call with a time limit is cancelled by it, and its run continues", async () => {
    const { belay } = await openTestBelay({
      work: async (turn) =>
        (await turn.call("slow", null, ({ signal }) => untilAborted(signal), { timeoutMs: 5 })).kind,
    });
    const session = await belay.createSession();
    expect(await session.prompt("work").text()).toBe("cancelled");
  });
});

describe("uncooperative code", () => {
  test("G12: a turn that ignores its signal is abandoned and reported, and the next prompt runs", {
    meta: { id: "G12/late-turn-result-dropped" },
  }, async () => {
    const end = gate();
    const { belay, began, notices } = await openTestBelay({
      deaf: async () => {
        await end.passed;
        return "too late";
      },
    });
    const session = await belay.createSession();
    const run = session.prompt("deaf");
    await began("deaf");
    await run.cancel();
    expect(await run.outcome).toEqual({ ...cancelled, abandoned: ["turn"] });
    expect(await session.prompt("next").outcome).toEqual({ kind: "completed" });
    const head = (await session.explain()).asOf;
    end.open();
    await expect
      .poll(() => notices)
      .toContainEqual({ type: "late", runId: run.id, work: "turn", outcome: "completed" });
    expect(belay.load.late).toBe(1);
    expect((await session.explain()).asOf).toBe(head);
  });

  test("G12: a tool that ignores its signal is reported in the outcome, and its turn may still end normally", {
    meta: { id: "G12/deaf-tool-named" },
  }, async () => {
    const { belay, began } = await openTestBelay({
      work: async (turn) => {
        const result = await turn.call("deaf-tool", null, () => new Promise(() => {}));
        return result.kind;
      },
    });
    const session = await belay.createSession();
    const run = session.prompt("work");
    await began("work");
    await expect.poll(async () => (await session.explain()).live?.calls.length).toBe(1);
    await run.cancel();
    expect(await run.outcome).toEqual({ ...cancelled, abandoned: ["deaf-tool"] });
  });

  test("G12: a cancel of one call can wait for its end, and its turn learns if the tool may still run", async () => {
    const { belay, began } = await openTestBelay({
      work: async (turn) => JSON.stringify(await turn.call("deaf-tool", null, () => new Promise(() => {}))),
    });
    const session = await belay.createSession();
    const run = session.prompt("work");
    await began("work");
    await expect.poll(async () => (await session.explain()).live?.calls.length).toBe(1);
    const [call] = (await session.explain()).live?.calls ?? [];
    expect(await belay.cancel(call?.callId ?? "", { waitMs: 0 })).toMatchObject({ ended: { kind: "limit" } });
    expect(await belay.cancel(call?.callId ?? "", { waitMs: 5000 })).toMatchObject({
      kind: "stopping",
      first: false,
      ended: { kind: "settled", outcome: { kind: "cancelled", abandoned: ["deaf-tool"] } },
    });
    expect(await run.text()).toContain('"abandoned":true');
  });

  test("G11: no call starts after a cancel is decided", { meta: { id: "G11/no-call-after-cancel" } }, async () => {
    let began = 0;
    const { belay, began: turnBegan } = await openTestBelay({
      work: async (turn) => {
        await untilAborted(turn.signal).catch(() => {});
        const result = await turn.call("after", null, () => {
          began += 1;
        });
        return result.kind;
      },
    });
    const session = await belay.createSession();
    const run = session.prompt("work");
    await turnBegan("work");
    await run.cancel();
    expect((await run.outcome).kind).toBe("cancelled");
    expect(began).toBe(0);
  });
});

describe("outcomes", () => {
  test("G15: an abort error without a cancel is a failure", {
    meta: { id: "G15/abort-error-is-failure" },
  }, async () => {
    const { belay } = await openTestBelay({
      odd: () => Promise.reject(new DOMException("The operation was aborted", "AbortError")),
    });
    const session = await belay.createSession();
    expect(await session.prompt("odd").outcome).toMatchObject({ kind: "failed" });
  });

  test("G15: an answer that contains the word interrupted is completed", async () => {
    const { belay } = await openTestBelay({ odd: () => "interrupted and cancelled" });
    const session = await belay.createSession();
    expect(await session.prompt("odd").outcome).toEqual({ kind: "completed" });
  });

  test("G15: a turn that completes after the cancel was recorded leaves the run cancelled, with its text", {
    meta: { id: "G15/late-completion-stays-cancelled" },
  }, async () => {
    const { belay, began } = await openTestBelay({
      work: async (turn) => {
        turn.emit("first half, ");
        await untilAborted(turn.signal).catch(() => {});
        turn.emit("second half");
        return undefined;
      },
    });
    const session = await belay.createSession();
    const run = session.prompt("work");
    await began("work");
    await run.cancel();
    expect(await run.outcome).toEqual(cancelled);
    expect(await session.transcript()).toMatchObject([
      { role: "user", text: "work" },
      { role: "assistant", text: "first half, second half", finish: { kind: "cancelled" } },
    ]);
  });

  test("G32: leaving the loop over a run's events cancels nothing", async () => {
    const { belay } = await openTestBelay();
    const session = await belay.createSession();
    const run = session.prompt("work");
    for await (const _ of run) break;
    expect(await run.outcome).toEqual({ kind: "completed" });
  });
});

test("a closed session refuses prompts, and has stopped its running work", async () => {
  const { belay, began } = await openTestBelay({ live: waits });
  const session = await belay.createSession();
  const live = session.prompt("live");
  await began("live");
  const queued = session.prompt("queued");
  await session.close();
  expect(await live.outcome).toMatchObject({ kind: "cancelled", reason: { kind: "closed" } });
  expect(await queued.outcome).toMatchObject({ kind: "cancelled", reason: { kind: "closed" } });
  const refused = session.prompt("more");
  await expect(refused.accepted).rejects.toBeInstanceOf(ControlError);
  await expect(refused.outcome).rejects.toMatchObject({ code: "closed", retryable: false });
});
