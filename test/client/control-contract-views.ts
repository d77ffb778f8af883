// What can be looked up of a run and a call, wherever the control runs: part of the contract of a BelayControl.
import { describe, expect, test } from "vitest";
import { RunError } from "../../src/core/read/run-result.ts";
import { type Open, staged } from "./control-fixture.ts";

const model = { provider: "acme.chat", id: "acme-1" };
const usage = { inputTokens: 3, outputTokens: 4, estimated: false };

export function controlContractViews(name: string, open: Open): void {
  describe(`${name}: a run and its calls can be looked up`, () => {
    test("a run has its prompt, key, times, usage by model, calls, and the text of its last turn alone", async () => {
      const { agent, session } = await staged(open);
      const run = session.prompt({ text: "how many?", data: { n: 1 } }, { key: "mine" });
      const first = await agent.nextTurn();
      const call = first.given.call("count", { of: "sheep" }, () => 42, {});
      await call;
      first.complete({ text: "I will look it up.", next: "turn", usage, model });
      const second = await agent.nextTurn();
      expect(await run.view()).toMatchObject({ phase: "live", turnId: second.given.turnId, text: "", turns: 2 });
      second.complete({ text: "The answer is 42.", usage, model });
      await run.outcome;
      const view = await run.view();
      expect(view).toMatchObject({
        ...{ id: run.id, session: session.id, phase: "settled", key: "mine", delivery: "queue", turns: 2 },
        prompt: { text: "how many?", data: { n: 1 } },
        outcome: { kind: "completed" },
        turnId: second.given.turnId,
        text: "The answer is 42.",
        usage: [{ model, turns: 2, inputTokens: 6, outputTokens: 8, estimated: false }],
        calls: [{ tool: "count", outcome: { kind: "completed" } }],
        callsOmitted: 0,
      });
      expect(view.accepted?.seq).toBe(view.acceptedAt);
      expect(view.settled?.seq).toBe(view.settledAt);
      expect(view.started?.at).toBeGreaterThan(0);
      expect(await run.text()).toBe("The answer is 42.");
      expect(await run.text({ all: true })).toBe("I will look it up.\n\nThe answer is 42.");
      const answers = (await session.transcript()).filter(({ role }) => role === "assistant");
      expect(answers.map((one) => "model" in one && one.model)).toEqual(expect.arrayContaining([model]));
    });

    test("a prompt without text whose data has nothing in it is refused as empty", async () => {
      const { session } = await staged(open);
      for (const data of [null, {}, { attachments: [] }]) {
        const refused = (async () => session.prompt({ text: " ", data }).accepted)();
        await expect(refused).rejects.toMatchObject({ code: "invalid", message: "The prompt is empty." });
      }
    });

    test("events beyond the end of the log are refused, and not waited for", async () => {
      const { session } = await staged(open);
      const { head } = await session.row();
      const refused = session.events({ after: head + 1 }).next();
      const message = `There is nothing at position ${head + 1} yet: the log ends at ${head}.`;
      await expect(refused).rejects.toMatchObject({ code: "invalid", message });
    });

    test("G10: a cancel of what is named like an id and never was is answered with `unknown`", async () => {
      const { control } = await staged(open);
      for (const id of ["proc_nope", "run_nope", "call_nope.1", "ask_nope.1", "ses_no pe"]) {
        expect(await control.cancel(id)).toEqual({ kind: "unknown" });
      }
      await expect((async () => control.cancel("nope"))()).rejects.toMatchObject({ code: "invalid" });
    });

    test("the terminal event has the key, the last turn and its text", async () => {
      const { agent, session } = await staged(open);
      const run = session.prompt("hello", { key: "mine" });
      const turn = await agent.nextTurn();
      turn.complete("Hi.");
      for await (const event of run) {
        if (event.type !== "run.settled") continue;
        expect(event).toMatchObject({ key: "mine", turnId: turn.given.turnId, text: "Hi." });
      }
    });

    test("result() is the answer of a run that completed, and throws on any other end", async () => {
      const { agent, session } = await staged(open);
      const run = session.prompt("hello");
      const long = "x".repeat(20_000);
      (await agent.nextTurn()).complete(long);
      expect(await run.result()).toMatchObject({ id: run.id, text: long });
      expect(await run.view()).toMatchObject({ truncated: true, text: long.slice(0, 16_384) });
      const failing = session.prompt("fail");
      (await agent.nextTurn()).fail(new Error("no key"));
      const error = await failing.result().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(RunError);
      expect(error).toMatchObject({ runId: failing.id, outcome: { kind: "failed", message: "no key" } });
    });

    test("a run is found by the caller's key", async () => {
      const { agent, session } = await staged(open);
      const run = session.prompt("hello", { key: "a/b?" });
      const turn = await agent.nextTurn();
      const found = await session.findRun("a/b?");
      expect(found.id).toBe(run.id);
      await expect(session.findRun("other")).rejects.toMatchObject({ code: "not_found" });
      turn.complete();
      await run.outcome;
    });

    test("a call is looked up and stopped by our id or the model's own, and its receipt names the tool", async () => {
      const { agent, session, control } = await staged(open);
      const run = session.prompt("hello");
      const turn = await agent.nextTurn();
      await run.accepted;
      const asked = { name: "build", input: { n: 1 }, provider: { id: "toolu_1" } };
      turn.complete({
        calls: [
          {
            ...asked,
            execute: ({ signal }) =>
              new Promise((_, no) => {
                signal.addEventListener("abort", () => no(signal.reason));
              }),
          },
        ],
      });
      const callId = `call_${run.id.slice(4)}.1`;
      await expect
        .poll(() =>
          control.call(callId).then(
            ({ phase }) => phase,
            () => "none",
          ),
        )
        .toBe("running");
      const view = await session.call("toolu_1");
      expect(view).toMatchObject({ id: callId, tool: "build", input: { n: 1 }, providerCallId: "toolu_1" });
      const stopping = await session.cancelCall("toolu_1", { reason: "wrong one", waitMs: 60_000 });
      expect(stopping).toMatchObject({ kind: "stopping", tool: "build", ended: { kind: "settled" } });
      expect(await control.call(callId)).toMatchObject({ phase: "settled", reason: { note: "wrong one" } });
      expect(await control.cancel(callId)).toMatchObject({ kind: "settled", tool: "build" });
      expect(await session.cancelCall("toolu_2")).toEqual({ kind: "unknown" });
      await expect(session.call("toolu_2")).rejects.toMatchObject({ code: "not_found" });
      (await agent.nextTurn()).complete();
      await run.outcome;
    });
  });
}
