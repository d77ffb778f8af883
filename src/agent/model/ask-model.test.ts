import type { LanguageModelV4 } from "@ai-sdk/provider";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeTurn } from "../../../test/fixtures/fake-turn.ts";
import type { Agent, TurnResult } from "../../ports/agent.ts";
import { Gate } from "../../testing/gate.ts";
import { manualClock, settled } from "../../testing/manual-clock.ts";
import { type ModelStep, type ScriptedModel, scriptedModel } from "../../testing/scripted-model.ts";
import { modelAgent } from "../loop/agent.ts";
import type { ModelAgentOptions } from "../loop/agent-options.ts";

const never = new Gate();
const deaf: ModelStep = { do: "wait", for: never, onCancel: "ignore" };
const heedful: ModelStep = { do: "wait", for: never };
const hi: ModelStep = { do: "say", text: "hi" };
const connect: ModelStep = { do: "connect" };
const fail = (error: unknown): ModelStep => ({ do: "fail", error });
const answering = (statusCode: number, responseHeaders = {}) =>
  Object.assign(new Error(`status ${statusCode}`), { statusCode, responseHeaders });
const refused = (statusCode: number, headers = {}): readonly ModelStep[] => [
  fail(answering(statusCode, headers)),
  connect,
];

function setUp(scripts: readonly (readonly ModelStep[])[], options: Partial<ModelAgentOptions> = {}) {
  const clock = manualClock();
  const model: ScriptedModel = scriptedModel(...scripts);
  const turn = new FakeTurn(clock);
  return { clock, model, turn, agent: modelAgent({ model, ...options }) };
}

const run = async (agent: Agent, turn: FakeTurn): Promise<TurnResult> => (await agent(turn)) as TurnResult;

/** How the request settles, without awaiting it. */
function watch(work: Promise<unknown>): { ended: "no" | "returned" | "thrown"; error?: unknown } {
  const watched: { ended: "no" | "returned" | "thrown"; error?: unknown } = { ended: "no" };
  work.then(
    () => {
      watched.ended = "returned";
    },
    (error: unknown) => {
      watched.ended = "thrown";
      watched.error = error;
    },
  );
  return watched;
}

const unhandled: unknown[] = [];
const note = (error: unknown) => void unhandled.push(error);
beforeEach(() => void process.on("unhandledRejection", note));
afterEach(async () => {
  await settled();
  process.off("unhandledRejection", note);
  expect(unhandled.splice(0)).toEqual([]);
});

describe("G13: a stop ends a request at once", () => {
  const compaction = { aboveTokens: 1 };
  test.each([
    ["while it connects, by a deaf model", [deaf, connect], {}],
    ["while it connects", [heedful, connect], {}],
    ["before the first part, by a deaf model", [deaf], {}],
    ["before the first part", [heedful], {}],
    ["in the middle, by a deaf model", [hi, deaf], {}],
    ["in the middle", [hi, heedful], {}],
    ["while it summarises, by a deaf model", [deaf, connect], { compaction }],
    ["in the middle of a summary", [hi, deaf], { compaction }],
  ] as const)("%s", async (_, steps, options) => {
    const { agent, turn, model, clock } = setUp([steps], options);
    turn.messages.unshift({ role: "assistant", runId: "run_0", text: "before", calls: [], finish: { kind: "end" } });
    const watched = watch(run(agent, turn));
    const request = await model.nextRequest();
    await settled();
    turn.abort();
    expect(request.aborted).toBe(true);
    await settled();
    expect(watched).toEqual({ ended: "thrown", error: turn.signal.reason });
    expect(clock.pending).toEqual([]);
    expect(turn.read().usage).toMatchObject({ estimated: true });
    expect(turn.read().usage?.inputTokens).toBeGreaterThan(0);
  });

  test.each([
    ["the transcript", (turn: FakeTurn) => void Object.assign(turn, { transcript: () => new Promise(() => {}) }), {}],
    ["what is still being chosen", () => {}, { model: () => new Promise<never>(() => {}) }],
    ["what is still being written", () => {}, { system: () => new Promise<never>(() => {}) }],
  ])("while the request waits for %s", async (_, prepare, options) => {
    const { agent, turn, model } = setUp([[hi]], options);
    prepare(turn);
    const watched = watch(run(agent, turn));
    await settled();
    turn.abort();
    await settled();
    expect(watched).toEqual({ ended: "thrown", error: turn.signal.reason });
    expect(model.requests).toEqual([]);
  });

  test("in the tick in which a model that ignores the signal begins to answer", async () => {
    const turn = new FakeTurn(manualClock());
    let closed = false;
    const stream = new ReadableStream<never>({
      cancel: () => {
        closed = true;
      },
    });
    // After the answer counts as begun and before its stream is read.
    const getReader = (): ReadableStreamDefaultReader<never> => {
      queueMicrotask(() => turn.abort());
      return ReadableStream.prototype.getReader.call(stream) as ReadableStreamDefaultReader<never>;
    };
    const answer = Promise.resolve({ stream: Object.assign(stream, { getReader }) as ReadableStream<never> });
    const model: LanguageModelV4 = { ...scriptedModel(), doStream: () => answer };
    const watched = watch(run(modelAgent({ model }), turn));
    await settled();
    expect(watched).toEqual({ ended: "thrown", error: turn.signal.reason });
    expect(closed).toBe(true);
  });

  test("between two attempts", async () => {
    const { agent, turn, model, clock } = setUp([refused(503), [hi]]);
    const watched = watch(run(agent, turn));
    await settled();
    expect(clock.pending).toHaveLength(1);
    turn.abort();
    await settled();
    expect(watched.ended).toBe("thrown");
    expect([clock.pending, model.requests.length]).toEqual([[], 1]);
  });

  test("G11: a stop before the start sends no request", async () => {
    const { agent, turn, model } = setUp([[hi]]);
    turn.abort();
    await expect(agent(turn)).rejects.toBe(turn.signal.reason);
    expect(model.requests).toEqual([]);
  });

  test("a connection that opens after the stop is closed", async () => {
    const gate = new Gate();
    const { agent, turn, model } = setUp([[{ do: "wait", for: gate, onCancel: "ignore" }, connect, hi, deaf]]);
    const watched = watch(run(agent, turn));
    const request = await model.nextRequest();
    turn.abort();
    await settled();
    expect(watched.ended).toBe("thrown");
    gate.open();
    await settled();
    expect(request.cancelled).toBe(true);
    expect(turn.text).toBe("");
  });

  test("a stream that never pauses does not delay the stop", async () => {
    const { agent, turn, clock } = setUp([], { model: endless() });
    const watched = watch(run(agent, turn));
    await settled();
    turn.abort();
    await clock.advance(1);
    expect(watched.ended).toBe("thrown");
  });

  test("G18: a partial answer is kept, with its usage", async () => {
    const { agent, turn } = setUp([[{ do: "think", text: "hmm", signature: "s" }, { do: "say", text: "hello" }, deaf]]);
    watch(run(agent, turn));
    await settled();
    turn.abort();
    await settled();
    expect(turn.read()).toEqual({
      model: { provider: "scripted", id: "scripted" },
      usage: { inputTokens: 2, outputTokens: 2, estimated: true },
      parts: [
        { kind: "reasoning", text: "hmm", provider: { scripted: { signature: "s" } } },
        { kind: "text", text: "hello" },
      ],
    });
  });
});

describe("a request is retried", () => {
  test.each([
    ["overload", refused(529)],
    ["rate limit", refused(429)],
    ["a reset connection", [fail(Object.assign(new Error("x"), { code: "ECONNRESET" })), connect]],
    ["no network", [fail(new TypeError("fetch failed")), connect]],
    ["what calls itself retryable", [fail(Object.assign(new Error("x"), { isRetryable: true })), connect]],
    ["an error in the stream", [{ do: "part", part: { type: "error", error: { type: "overloaded_error" } } }]],
    ["an end without a finish", [{ do: "close" }]],
    ["an end with an error", [{ do: "finish", reason: "error" }]],
    ["an end before the end", [{ do: "finish", reason: "interrupted" }]],
  ] as readonly (readonly [string, readonly ModelStep[]])[])("after %s", async (_, script) => {
    const { agent, turn, model, clock } = setUp([script, [hi]]);
    const result = run(agent, turn);
    await clock.advance(500);
    expect(await result).toMatchObject({ finish: "stop" });
    expect([turn.text, model.requests.length]).toEqual(["hi", 2]);
  });

  test("after pauses that double, up to a limit", { meta: { id: "G33/model-retries-bounded" } }, async () => {
    const { agent, turn, model, clock } = setUp([refused(503), refused(503), refused(503), refused(503)]);
    const watched = watch(run(agent, turn));
    for (const ms of [500, 1_000, 2_000]) {
      await settled();
      expect(clock.pending).toEqual([{ inMs: ms, idle: false }]);
      await clock.advance(ms);
    }
    expect(watched.error).toMatchObject({ name: "ModelError", code: "model_overloaded" });
    expect(watched.error).toMatchObject({ message: "scripted answered 503: status 503 (4 attempts)" });
    expect(model.requests).toHaveLength(4);
    expect(turn.read()).toEqual({ model: { provider: "scripted", id: "scripted" } });
  });

  test.each([
    [{ "retry-after": "7" }, 7_000],
    [{ "retry-after-ms": "70", "retry-after": "7" }, 70],
    [{ "retry-after": "3600" }, 30_000],
    [{ "retry-after": "Wed, 21 Oct 2026 07:28:00 GMT" }, 500],
    [{ "retry-after": "Wed, 21 Oct 2026 07:28:09 GMT", date: "Wed, 21 Oct 2026 07:28:00 GMT" }, 9_000],
  ])("after the provider's retry-after: %o", async (headers, ms) => {
    const { agent, turn, clock } = setUp([refused(429, headers), [hi]]);
    const result = run(agent, turn);
    await settled();
    expect(clock.pending).toEqual([{ inMs: ms, idle: false }]);
    await clock.advance(ms);
    expect(await result).toMatchObject({ finish: "stop" });
  });
});

describe("a request is not retried", () => {
  const broken = fail(new TypeError("terminated"));
  test.each([
    ["after text", [hi, broken], "model_error"],
    ["after reasoning", [{ do: "think", text: "hm" }, broken], "model_error"],
    ["after a call", [{ do: "call", name: "echo" }, broken], "model_error"],
    [
      "after text, with an error in the stream",
      [hi, { do: "part", part: { type: "error", error: "no" } }],
      "model_error",
    ],
    ["after text that just ends", [hi, { do: "close" }], "model_error"],
    ["if it was refused", [...refused(400)], "model_rejected"],
    ["if it was forbidden", [...refused(401)], "model_rejected"],
    ["if it failed for another reason", [fail(new RangeError("oops")), connect], "model_error"],
    ["if it requests an approval", [approvalWanted()], "model_error"],
  ] as readonly (readonly [string, readonly ModelStep[], string])[])("%s", async (_, script, code) => {
    const { agent, turn, model, clock } = setUp([script, [hi]]);
    const watched = watch(run(agent, turn));
    await clock.advance(60_000);
    expect(watched.error).toMatchObject({ name: "ModelError", code });
    expect(model.requests).toHaveLength(1);
    expect(model.requests[0]?.aborted).toBe(true);
  });

  test("emitted text is kept", async () => {
    const { agent, turn } = setUp([[hi, broken]]);
    await expect(agent(turn)).rejects.toThrow("terminated");
    expect(turn.text).toBe("hi");
    expect(turn.read().usage).toMatchObject({ outputTokens: 1, estimated: true });
  });
});

describe("idle timeouts", () => {
  const once = { retry: { attemptsMax: 1 } };

  test("before the first byte: retried, then failed", {
    meta: { id: "G33/silence-before-first-byte" },
  }, async () => {
    const { agent, turn, model, clock } = setUp([[deaf, connect], [hi]]);
    const result = run(agent, turn);
    await clock.advance(29_999);
    expect(model.requests[0]?.aborted).toBe(false);
    await clock.advance(1);
    expect(model.requests[0]?.aborted).toBe(true);
    await clock.advance(500);
    // The request that timed out may have been charged.
    expect((await result).usage).toEqual({ inputTokens: 12, outputTokens: 5, estimated: true });
    const last = setUp([[deaf, connect]], once);
    const watched = watch(run(last.agent, last.turn));
    await last.clock.advance(30_000);
    expect(watched.error).toMatchObject({ code: "model_timeout" });
  });

  test("within an answer: not retried", { meta: { id: "G33/silence-mid-answer-not-retried" } }, async () => {
    const { agent, turn, model, clock } = setUp([[hi, deaf], [hi]]);
    const watched = watch(run(agent, turn));
    await clock.advance(119_999);
    expect(watched.ended).toBe("no");
    await clock.advance(1);
    expect(watched.error).toMatchObject({ code: "model_timeout" });
    expect([turn.text, model.requests.length]).toEqual(["hi", 1]);
    expect(model.requests[0]?.cancelled).toBe(true);
  });

  test("a ping resets the timeout without a new timer", async () => {
    const gate = new Gate();
    const wait = { do: "wait", for: gate, onCancel: "ignore" } as const;
    const { agent, turn, clock } = setUp([[wait, { do: "part", part: { type: "ping" } }, deaf]]);
    const watched = watch(run(agent, turn));
    await clock.advance(100_000);
    gate.open();
    await settled();
    expect(clock.pending).toEqual([{ inMs: 20_000, idle: false }]);
    await clock.advance(119_999);
    expect(watched.ended).toBe("no");
  });

  test("after the finish the stream is drained in the background, for at most a second", async () => {
    const { agent, turn, model, clock } = setUp([[hi, { do: "finish" }, deaf]]);
    expect(await run(agent, turn)).toMatchObject({ finish: "stop" });
    expect(clock.pending).toEqual([{ inMs: 1_000, idle: true }]);
    await clock.advance(1_000);
    expect(model.requests[0]?.cancelled).toBe(true);
  });
});

test("an answer that ends leaves no timer and no listener", async () => {
  const { agent, turn, clock, model } = setUp([[hi]]);
  await run(agent, turn);
  await settled();
  expect(clock.pending).toEqual([]);
  expect(model.requests[0]).toMatchObject({ aborted: false, cancelled: false });
});

function endless(): LanguageModelV4 {
  const stream = () => new ReadableStream({ pull: (controller) => controller.enqueue({ type: "ping" }) });
  return { ...scriptedModel(), doStream: () => Promise.resolve({ stream: stream() }) };
}

function approvalWanted(): ModelStep {
  return { do: "part", part: { type: "tool-approval-request", approvalId: "a", toolCallId: "b" } };
}
