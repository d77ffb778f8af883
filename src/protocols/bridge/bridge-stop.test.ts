import { describe, expect, test } from "vitest";
import { type InMemoryHost, openBridge, type TestBridge } from "../../../test/fixtures/bridge-host.ts";
import type { CallRequest } from "../../ports/agent.ts";
import { manualClock, settled } from "../../testing/manual-clock.ts";
import { statusOf } from "../cancel-call.ts";
import { sessionStatus } from "./stop-methods.ts";

/** A session with one live run that has asked for one call, which has begun and waits for the test. */
async function withCall(house: TestBridge, options: { readonly heeds?: boolean } = {}) {
  const { host, agent } = house;
  const sessionId = await host.newSession();
  host.send({ id: "prompt", method: "session/prompt", params: { sessionId, prompt: "go" } });
  const turn = await agent.nextTurn();
  const call = turn.call("shell", { command: "make" });
  const live = await call.begun;
  if (options.heeds !== false) live.signal.addEventListener("abort", () => call.fail(live.signal.reason));
  return { sessionId, turn, call, callId: live.callId };
}

const stopCall = (host: InMemoryHost, params: object) => host.ask("session/cancel_tool_call", params);

test.each([
  [{ reason: 7, waitMs: "soon", more: true }, "[unreadable reason]"],
  [{ reason: { note: "why", more: 1 }, waitMs: -1 }, "why"],
])("G7: a stop with %j is carried out", async (odd, note) => {
  const { host, agent } = await openBridge();
  const sessionId = await host.newSession();
  host.send({ id: 1, method: "session/prompt", params: { sessionId, prompt: "work" } });
  await agent.nextTurn();
  host.send({ method: "session/cancel", params: { sessionId, ...odd } });
  expect((await host.answer(1)).result).toMatchObject({ outcome: { kind: "cancelled", reason: { note } } });
});

describe("one piece of input", () => {
  test("G7: a cancel covers the prompt in the line before it, and not the one in the line after it", async () => {
    const { host, agent } = await openBridge();
    const sessionId = await host.newSession();
    host.send(
      { id: 1, method: "session/prompt", params: { sessionId, prompt: "before" } },
      { method: "session/cancel", params: { sessionId, reason: "changed my mind" } },
      { id: 2, method: "session/prompt", params: { sessionId, prompt: "after" } },
    );
    expect((await host.answer(1)).result).toMatchObject({
      outcome: { kind: "cancelled", reason: { kind: "user", note: "changed my mind" } },
    });
    const turn = await agent.nextTurn();
    expect(turn.given.prompt.text).toBe("after");
    turn.complete("on");
    expect((await host.answer(2)).result).toMatchObject({ outcome: { kind: "completed" }, text: "on" });
    expect(agent.turns).toHaveLength(1);
  });

  test("G7: each of many stops in one piece of input covers the prompt before it, and no later one", async () => {
    const { host, agent } = await openBridge();
    const sessionId = await host.newSession();
    const lines = Array.from({ length: 20 }, (_, index) => [
      { id: `p${index}`, method: "session/prompt", params: { sessionId, prompt: `p${index}` } },
      { id: `c${index}`, method: "session/cancel", params: { sessionId } },
    ]).flat();
    host.send(...lines, { id: "last", method: "session/prompt", params: { sessionId, prompt: "last" } });
    for (let index = 0; index < 20; index += 1) {
      const { result: ended } = await host.answer(`p${index}`);
      expect(ended).toMatchObject({ outcome: { kind: "cancelled" } });
      const { result } = await host.answer(`c${index}`);
      expect(result).toMatchObject({ status: "cancelled" });
      const { runs } = result as { readonly runs: readonly { readonly runId: string }[] };
      expect(runs.map(({ runId }) => runId)).toEqual([(ended as { readonly runId: string }).runId]);
    }
    (await agent.nextTurn()).complete();
    expect((await host.answer("last")).result).toMatchObject({ outcome: { kind: "completed" } });
  });

  test("a prompt is stopped by the id of its request, before its run has one", async () => {
    const { host, agent } = await openBridge();
    const sessionId = await host.newSession();
    host.send(
      { id: 1, method: "session/prompt", params: { sessionId, prompt: "one" } },
      { id: 2, method: "run/cancel", params: { requestId: 1 } },
      { id: 3, method: "run/cancel", params: { requestId: 99 } },
    );
    expect((await host.answer(1)).result).toMatchObject({ outcome: { kind: "cancelled" } });
    expect((await host.answer(3)).result).toEqual({ kind: "unknown" });
    expect(agent.turns).toHaveLength(0);
  });

  test("a prompt is stopped by the key it was given, and its neighbour is not", async () => {
    const { host, agent } = await openBridge();
    const sessionId = await host.newSession();
    host.send(
      { id: 1, method: "session/prompt", params: { sessionId, prompt: "one", key: "k" } },
      { id: 2, method: "run/cancel", params: { sessionId, promptKey: "k" } },
      { id: 3, method: "session/prompt", params: { sessionId, prompt: "two" } },
    );
    expect((await host.answer(1)).result).toMatchObject({ outcome: { kind: "cancelled" } });
    (await agent.nextTurn()).complete("on");
    expect((await host.answer(3)).result).toMatchObject({ text: "on" });
    expect(agent.turns).toHaveLength(1);
  });

  test("a cancel does not wait for a request whose answer waits", async () => {
    const house = await openBridge();
    const { host, turn } = { ...house, ...(await withCall(house)) };
    const sessionId = turn.given.sessionId;
    host.send(
      { id: "slow", method: "run/cancel", params: { runId: turn.given.runId, waitMs: 600_000 } },
      { id: "stop", method: "session/cancel", params: { sessionId } },
    );
    expect((await host.answer("stop")).result).toMatchObject({ status: "already_cancelled" });
    turn.endCancelled();
    expect((await host.answer("slow")).result).toMatchObject({ kind: "stopping", ended: { kind: "settled" } });
  });
});

describe("session/cancel", () => {
  test("G10: says whether it was the one that counted", async () => {
    const { host, agent } = await openBridge();
    const sessionId = await host.newSession();
    expect((await host.ask("session/cancel", { sessionId })).result).toEqual({
      kind: "idle",
      runs: [],
      status: "idle",
    });
    expect((await host.ask("session/cancel", { sessionId: "ses_none" })).result).toMatchObject({ status: "not_found" });
    expect((await host.ask("session/cancel")).error?.code).toBe(-32602);
    host.send({ id: 1, method: "session/prompt", params: { sessionId, prompt: "go" } });
    const turn = await agent.nextTurn();
    const first = await host.ask("session/cancel", { sessionId });
    expect(first.result).toMatchObject({ status: "cancelled", kind: "stopping", runs: [{ receipt: { first: true } }] });
    expect((await host.ask("session/cancel", { sessionId })).result).toMatchObject({ status: "already_cancelled" });
    turn.endCancelled();
    expect((await host.answer(1)).result).toMatchObject({ outcome: { kind: "cancelled" } });
  });

  test("a stop is not refused for a field it does not need", async () => {
    const { host } = await openBridge();
    const sessionId = await host.newSession();
    expect((await host.ask("session/cancel", { sessionId, _meta: {} })).result).toMatchObject({ status: "idle" });
  });

  test("a background process that was being stopped before does not count as stopped now", () => {
    const again = { kind: "stopping", since: 3, first: false } as const;
    const processes = [{ processId: "proc_a.1", receipt: again }] as const;
    expect(sessionStatus({ kind: "stopping", runs: [], processes })).toBe("already_cancelled");
    const first = [{ processId: "proc_a.1", receipt: { ...again, first: true } }] as const;
    expect(sessionStatus({ kind: "stopping", runs: [], processes: first })).toBe("cancelled");
  });
});

describe("session/cancel_tool_call", () => {
  test.each(["toolCallId", "tool_call_id", "callId", "call_id"])(
    "G9: by %s it stops the call, and the run goes on",
    async (name) => {
      const house = await openBridge();
      const { host } = house;
      const { sessionId, turn, call, callId } = await withCall(house);
      const { result } = await stopCall(host, { sessionId, [name]: callId, reason: "too slow" });
      expect(result).toMatchObject({
        status: "cancelled",
        callId,
        tool: "shell",
        receipt: { ended: { kind: "settled" } },
      });
      expect(await call.result).toMatchObject({ kind: "cancelled", reason: { note: "too slow" } });
      turn.complete("without it");
      expect((await host.answer("prompt")).result).toMatchObject({ outcome: { kind: "completed" } });
    },
  );

  test("already_cancelled while another has stopped it, and after that as well", async () => {
    const house = await openBridge({ graceMs: 60_000 });
    const { host } = house;
    const { sessionId, call, callId } = await withCall(house, { heeds: false });
    expect((await stopCall(host, { sessionId, callId, timeoutMs: 0 })).result).toMatchObject({ status: "cancelled" });
    const again = await stopCall(host, { sessionId, callId, timeoutMs: 0 });
    expect(again.result).toMatchObject({ status: "already_cancelled", receipt: { kind: "stopping", first: false } });
    call.fail((await call.begun).signal.reason);
    await call.result;
    const late = await stopCall(host, { sessionId, callId });
    expect(late.result).toMatchObject({ status: "already_cancelled", tool: "shell", receipt: { kind: "settled" } });
  });

  test("timeout when the limit comes before the end, which is still recorded", async () => {
    const clock = manualClock();
    const house = await openBridge({ clock, graceMs: 60_000 });
    const { host } = house;
    const { sessionId, call, callId } = await withCall(house, { heeds: false });
    host.send({ id: "stop", method: "session/cancel_tool_call", params: { sessionId, callId, timeoutMs: 700 } });
    await settled();
    await clock.advance(699);
    expect(host.lines.some((line) => line.id === "stop")).toBe(false);
    await clock.advance(1);
    const { result } = await host.answer("stop");
    expect(result).toMatchObject({
      status: "timeout",
      receipt: { first: true, ended: { kind: "limit", waitMs: 700 } },
    });
    call.fail((await call.begun).signal.reason);
    expect(await call.result).toMatchObject({ kind: "cancelled" });
  });

  test("waits 5000 ms unless it is told otherwise", async () => {
    const clock = manualClock();
    const house = await openBridge({ clock, graceMs: 60_000 });
    const { sessionId, callId } = await withCall(house, { heeds: false });
    house.host.send({ id: "stop", method: "session/cancel_tool_call", params: { sessionId, callId } });
    await settled();
    await clock.advance(5_000);
    expect((await house.host.answer("stop")).result).toMatchObject({ receipt: { ended: { waitMs: 5_000 } } });
  });

  test("not_found for a call that had finished, with the receipt that says how", async () => {
    const house = await openBridge();
    const { sessionId, call, callId } = await withCall(house);
    call.complete("made");
    await call.result;
    const { result } = await stopCall(house.host, { sessionId, callId });
    expect(result).toMatchObject({ status: "not_found", receipt: { kind: "settled", outcome: { kind: "completed" } } });
  });

  test("not_found for a call that finishes although it was asked to stop: its result stands", async () => {
    const house = await openBridge({ graceMs: 60_000 });
    const { sessionId, call, callId } = await withCall(house, { heeds: false });
    (await call.begun).signal.addEventListener("abort", () => call.complete("made"));
    const { result } = await stopCall(house.host, { sessionId, callId });
    const ended = { kind: "settled", outcome: { kind: "completed" } };
    expect(result).toMatchObject({ status: "not_found", receipt: { kind: "stopping", first: true, ended } });
  });

  test("not_found, and untouched, for a call of another session", async () => {
    const house = await openBridge();
    const { host } = house;
    const { sessionId, turn, call, callId } = await withCall(house);
    const other = await host.newSession();
    for (const params of [
      { sessionId: other, callId },
      { sessionId, callId: "call_none.1" },
      { sessionId: "ses_none", callId },
    ]) {
      const { result } = await stopCall(host, params);
      expect(result).toEqual({ status: "not_found", callId: params.callId, tool: null, receipt: { kind: "unknown" } });
    }
    call.complete("made");
    expect(await call.result).toMatchObject({ kind: "completed" });
    turn.complete();
  });

  test("a request without a session or a call is -32602; a notification without is passed over", async () => {
    const { host } = await openBridge();
    const sessionId = await host.newSession();
    expect((await stopCall(host, { callId: "call_x.1" })).error?.code).toBe(-32602);
    expect((await stopCall(host, { sessionId })).error?.code).toBe(-32602);
    expect((await stopCall(host, { sessionId, callId: "" })).error?.code).toBe(-32602);
    expect((await stopCall(host, { sessionId, callId: 5 })).error?.code).toBe(-32602);
    const before = host.lines.length;
    host.send({ method: "session/cancel_tool_call", params: { sessionId } });
    await host.ask("ping");
    expect(host.lines).toHaveLength(before + 1);
  });

  test("as a notification it stops the call and answers nothing", async () => {
    const house = await openBridge();
    const { host } = house;
    const { sessionId, call, callId } = await withCall(house);
    const before = host.lines.length;
    host.send({ method: "session/cancel_tool_call", params: { sessionId, toolCallId: callId } });
    expect(await call.result).toMatchObject({ kind: "cancelled" });
    await host.ask("ping");
    expect(host.lines).toHaveLength(before + 1);
  });

  test.each([
    [{}, 1],
    [{ injectReminder: true }, 1],
    [{ injectReminder: false }, 0],
  ])("with %o the model is reminded %i times", async (params, times) => {
    const house = await openBridge();
    const { sessionId, turn, callId } = await withCall(house);
    await stopCall(house.host, { sessionId, callId, ...params });
    turn.askAgain();
    const next = await house.agent.nextTurn();
    const notes = (await next.given.transcript()).filter((message) => message.role === "note");
    expect(notes).toHaveLength(times);
  });

  test("every receipt has one status", () => {
    const cancelled = { kind: "cancelled", reason: { kind: "user" } } as const;
    expect(statusOf({ kind: "withdrawn" }, 5)).toBe("cancelled");
    expect(statusOf({ kind: "unknown" }, 5)).toBe("not_found");
    expect(statusOf({ kind: "settled", outcome: cancelled }, 5)).toBe("already_cancelled");
    expect(statusOf({ kind: "settled", outcome: { kind: "lost" } }, 5)).toBe("not_found");
    const limit = { kind: "limit", waitMs: 5 } as const;
    expect(statusOf({ kind: "stopping", since: 1, first: false, ended: limit }, 5)).toBe("already_cancelled");
  });
});

describe("the id a provider gave", () => {
  const request = (id: string, calls: Map<string, Waiting>, name = "shell"): CallRequest => ({
    name,
    input: null,
    provider: { id },
    execute: (live) =>
      new Promise((resolve, reject) => {
        calls.set(live.callId, { complete: resolve });
        live.signal.addEventListener("abort", () => reject(live.signal.reason));
      }),
  });
  interface Waiting {
    complete(value: string): void;
  }

  async function withRequests(house: TestBridge, ids: readonly string[]) {
    const sessionId = await house.host.newSession();
    await house.host.ask("session/subscribe", { sessionId });
    house.host.send({ id: "prompt", method: "session/prompt", params: { sessionId, prompt: "go" } });
    const calls = new Map<string, Waiting>();
    (await house.agent.nextTurn()).complete({ calls: ids.map((id) => request(id, calls)) });
    return { sessionId, calls };
  }

  test("names the live call of that session, also if it looks like one of ours", async () => {
    const house = await openBridge();
    const { sessionId } = await withRequests(house, ["call_abc123", "toolu_2"]);
    await house.host.event("call.requested", (event) => JSON.stringify(event).includes("toolu_2"));
    const { result } = await stopCall(house.host, { sessionId, toolCallId: "call_abc123" });
    expect(result).toMatchObject({ status: "cancelled", tool: "shell" });
    expect(String(result?.callId)).toMatch(/^call_.*\.\d+$/);
    expect(result?.callId).not.toBe("call_abc123");
    const { result: explained } = await house.host.ask("session/explain", { sessionId });
    expect(explained?.live).toMatchObject({ phase: "running", calls: [{ name: "shell" }] });
    expect((await stopCall(house.host, { sessionId, toolCallId: "toolu_2" })).result).toMatchObject({
      status: "cancelled",
    });
  });

  test("if it repeats, the live one is meant and not the one that has ended", async () => {
    const house = await openBridge();
    const { sessionId, calls } = await withRequests(house, ["same"]);
    const { callId: first } = await house.host.event("call.requested");
    await settled();
    calls.get(String(first))?.complete("made");
    (await house.agent.nextTurn()).complete({ calls: [request("same", calls)] });
    await house.host.event("call.requested", ({ callId }) => callId !== first);
    const { result } = await stopCall(house.host, { sessionId, toolCallId: "same" });
    expect(result).toMatchObject({ status: "cancelled" });
    expect(result?.callId).not.toBe(first);
  });

  test("G10: if it names two live calls, neither is stopped and both are named", async () => {
    const house = await openBridge();
    const { sessionId } = await withRequests(house, ["twin", "twin"]);
    await house.host.line(
      () => house.host.lines.filter((line) => JSON.stringify(line).includes("call.requested")).length === 2,
    );
    const { error } = await stopCall(house.host, { sessionId, toolCallId: "twin" });
    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining("several live calls") });
    const { result } = await house.host.ask("session/explain", { sessionId });
    expect(result?.live).toMatchObject({ calls: [{ phase: "running" }, { phase: "running" }] });
  });
});

test("run/cancel, process/cancel and question/cancel stop what they are for, and nothing of another kind", async () => {
  const house = await openBridge();
  const { host } = house;
  const { sessionId, turn } = await withCall(house);
  const { runId } = turn.given;
  expect((await host.ask("run/cancel", { runId: sessionId })).error?.code).toBe(-32602);
  expect((await host.ask("process/cancel", { processId: runId })).error?.code).toBe(-32602);
  expect((await host.ask("question/cancel", { questionId: runId })).error?.code).toBe(-32602);
  expect((await host.ask("process/cancel", { processId: "proc_none.1" })).result).toEqual({ kind: "unknown" });
  expect((await host.ask("question/cancel", { questionId: "ask_none.1" })).result).toEqual({ kind: "unknown" });
  expect((await host.ask("run/cancel", { runId: "run_none" })).result).toEqual({ kind: "unknown" });
  expect((await host.ask("run/cancel", { runId })).result).toMatchObject({ kind: "stopping", first: true });
  turn.endCancelled();
  await host.answer("prompt");
});
