import { describe, expect, test } from "vitest";
import { type InMemoryHost, openBridge, type TestBridge } from "../../../test/fixtures/bridge-host.ts";
import type { CallRequest } from "../../ports/agent.ts";
import { manualClock, settled } from "../../testing/manual-clock.ts";
import { statusOf } from "../cancel-call.ts";
import { sessionStatus } from "./stop-methods.ts";

/** A session with one live run, whose one call has begun and waits for the test. */
async function withCall(bridge: TestBridge, options: { readonly heeds?: boolean } = {}) {
  const { host, agent } = bridge;
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
])("G7: a stop with %j takes effect", async (odd, note) => {
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

  test("a prompt is stopped by its key, and its neighbour is not", async () => {
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

  test("a cancel does not wait for a request whose answer is pending", async () => {
    const bridge = await openBridge();
    const { host, turn } = { ...bridge, ...(await withCall(bridge)) };
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
  test("G10: reports whether it was the first stop", async () => {
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

  test("a background process that was being stopped already does not count as stopped now", () => {
    const again = { kind: "stopping", since: 3, first: false } as const;
    const processes = [{ processId: "proc_a.1", receipt: again }] as const;
    expect(sessionStatus({ kind: "stopping", runs: [], processes })).toBe("already_cancelled");
    const first = [{ processId: "proc_a.1", receipt: { ...again, first: true } }] as const;
    expect(sessionStatus({ kind: "stopping", runs: [], processes: first })).toBe("cancelled");
  });
});

describe("session/cancel_tool_call", () => {
  test.each(["toolCallId", "tool_call_id", "callId", "call_id"])(
    "G9: stops the call named by %s, and the run continues",
    async (name) => {
      const bridge = await openBridge();
      const { host } = bridge;
      const { sessionId, turn, call, callId } = await withCall(bridge);
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

  test("answers already_cancelled during and after another client's stop", async () => {
    const bridge = await openBridge({ graceMs: 60_000 });
    const { host } = bridge;
    const { sessionId, call, callId } = await withCall(bridge, { heeds: false });
    expect((await stopCall(host, { sessionId, callId, timeoutMs: 0 })).result).toMatchObject({ status: "cancelled" });
    const again = await stopCall(host, { sessionId, callId, timeoutMs: 0 });
    expect(again.result).toMatchObject({ status: "already_cancelled", receipt: { kind: "stopping", first: false } });
    call.fail((await call.begun).signal.reason);
    await call.result;
    const late = await stopCall(host, { sessionId, callId });
    expect(late.result).toMatchObject({ status: "already_cancelled", tool: "shell", receipt: { kind: "settled" } });
  });

  test("answers timeout when the limit comes before the end, which is still recorded", async () => {
    const clock = manualClock();
    const bridge = await openBridge({ clock, graceMs: 60_000 });
    const { host } = bridge;
    const { sessionId, call, callId } = await withCall(bridge, { heeds: false });
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

  test("waits 5000 ms by default", async () => {
    const clock = manualClock();
    const bridge = await openBridge({ clock, graceMs: 60_000 });
    const { sessionId, callId } = await withCall(bridge, { heeds: false });
    bridge.host.send({ id: "stop", method: "session/cancel_tool_call", params: { sessionId, callId } });
    await settled();
    await clock.advance(5_000);
    expect((await bridge.host.answer("stop")).result).toMatchObject({ receipt: { ended: { waitMs: 5_000 } } });
  });

  test("answers not_found for a finished call, with its outcome in the receipt", async () => {
    const bridge = await openBridge();
    const { sessionId, call, callId } = await withCall(bridge);
    call.complete("made");
    await call.result;
    const { result } = await stopCall(bridge.host, { sessionId, callId });
    expect(result).toMatchObject({ status: "not_found", receipt: { kind: "settled", outcome: { kind: "completed" } } });
  });

  test("answers not_found for a call that finishes despite the stop: its result stands", async () => {
    const bridge = await openBridge({ graceMs: 60_000 });
    const { sessionId, call, callId } = await withCall(bridge, { heeds: false });
    (await call.begun).signal.addEventListener("abort", () => call.complete("made"));
    const { result } = await stopCall(bridge.host, { sessionId, callId });
    const ended = { kind: "settled", outcome: { kind: "completed" } };
    expect(result).toMatchObject({ status: "not_found", receipt: { kind: "stopping", first: true, ended } });
  });

  test("answers not_found for a call of another session, which continues", async () => {
    const bridge = await openBridge();
    const { host } = bridge;
    const { sessionId, turn, call, callId } = await withCall(bridge);
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

  test("refuses a request without a session or a call with -32602; ignores such a notification", async () => {
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

  test("as a notification it stops the call without an answer", async () => {
    const bridge = await openBridge();
    const { host } = bridge;
    const { sessionId, call, callId } = await withCall(bridge);
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
    const bridge = await openBridge();
    const { sessionId, turn, callId } = await withCall(bridge);
    await stopCall(bridge.host, { sessionId, callId, ...params });
    turn.askAgain();
    const next = await bridge.agent.nextTurn();
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

describe("a provider's call id", () => {
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

  async function withRequests(bridge: TestBridge, ids: readonly string[]) {
    const sessionId = await bridge.host.newSession();
    await bridge.host.ask("session/subscribe", { sessionId });
    bridge.host.send({ id: "prompt", method: "session/prompt", params: { sessionId, prompt: "go" } });
    const calls = new Map<string, Waiting>();
    (await bridge.agent.nextTurn()).complete({ calls: ids.map((id) => request(id, calls)) });
    return { sessionId, calls };
  }

  test("names the live call of its session, even if it looks like a Belay id", async () => {
    const bridge = await openBridge();
    const { sessionId } = await withRequests(bridge, ["call_abc123", "toolu_2"]);
    await bridge.host.event("call.requested", (event) => JSON.stringify(event).includes("toolu_2"));
    const { result } = await stopCall(bridge.host, { sessionId, toolCallId: "call_abc123" });
    expect(result).toMatchObject({ status: "cancelled", tool: "shell" });
    expect(String(result?.callId)).toMatch(/^call_.*\.\d+$/);
    expect(result?.callId).not.toBe("call_abc123");
    const { result: explained } = await bridge.host.ask("session/explain", { sessionId });
    expect(explained?.live).toMatchObject({ phase: "running", calls: [{ name: "shell" }] });
    expect((await stopCall(bridge.host, { sessionId, toolCallId: "toolu_2" })).result).toMatchObject({
      status: "cancelled",
    });
  });

  test("if reused, names the live call and not the ended one", async () => {
    const bridge = await openBridge();
    const { sessionId, calls } = await withRequests(bridge, ["same"]);
    const { callId: first } = await bridge.host.event("call.requested");
    await settled();
    calls.get(String(first))?.complete("made");
    (await bridge.agent.nextTurn()).complete({ calls: [request("same", calls)] });
    await bridge.host.event("call.requested", ({ callId }) => callId !== first);
    const { result } = await stopCall(bridge.host, { sessionId, toolCallId: "same" });
    expect(result).toMatchObject({ status: "cancelled" });
    expect(result?.callId).not.toBe(first);
  });

  test("G10: if ambiguous, stops neither call and names both", async () => {
    const bridge = await openBridge();
    const { sessionId } = await withRequests(bridge, ["twin", "twin"]);
    await bridge.host.line(
      () => bridge.host.lines.filter((line) => JSON.stringify(line).includes("call.requested")).length === 2,
    );
    const { error } = await stopCall(bridge.host, { sessionId, toolCallId: "twin" });
    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining("several live calls") });
    const { result } = await bridge.host.ask("session/explain", { sessionId });
    expect(result?.live).toMatchObject({ calls: [{ phase: "running" }, { phase: "running" }] });
  });
});

test("run/cancel, process/cancel and question/cancel accept only ids of their own kind", async () => {
  const bridge = await openBridge();
  const { host } = bridge;
  const { sessionId, turn } = await withCall(bridge);
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
