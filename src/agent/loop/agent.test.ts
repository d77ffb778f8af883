import { describe, expect, test } from "vitest";
import { FakeTurn } from "../../../test/fixtures/fake-turn.ts";
import type { CallId } from "../../core/model/ids.ts";
import type { Message } from "../../core/read/transcript.ts";
import type { Agent, TurnResult } from "../../ports/agent.ts";
import { Gate } from "../../testing/gate.ts";
import { manualClock } from "../../testing/manual-clock.ts";
import { type ModelStep, scriptedModel } from "../../testing/scripted-model.ts";
import { CALLS_PER_TURN_MAX } from "../limits.ts";
import { tool } from "../tools/tool.ts";
import { modelAgent } from "./agent.ts";
import type { ModelAgentOptions } from "./agent-options.ts";

const echo = tool({
  description: "Says it again.",
  input: { jsonSchema: { type: "object" } },
  execute: (input) => input as never,
});

function setUp(steps: readonly ModelStep[], options: Partial<ModelAgentOptions> = {}) {
  const clock = manualClock();
  const model = scriptedModel(steps);
  const turn = new FakeTurn(clock);
  const agent = modelAgent({ model, tools: { echo }, ...options });
  return { clock, model, turn, agent };
}

const run = async (agent: Agent, turn: FakeTurn): Promise<TurnResult> => (await agent(turn)) as TurnResult;

const model = { provider: "scripted", id: "scripted" };
const told = { usage: { inputTokens: 10, outputTokens: 5, estimated: false }, model };

describe("an answer", () => {
  test("text is streamed, and the result contains only its end", async () => {
    const { agent, turn } = setUp([{ do: "say", text: "hi" }]);
    expect(await run(agent, turn)).toEqual({ next: "end", finish: "stop", ...told });
    expect(turn.emitted).toEqual([{ text: "hi", kind: "text" }]);
  });

  test("reasoning is emitted as such, and kept with its signature", async () => {
    const { agent, turn } = setUp([
      { do: "think", text: "hmm", signature: "s" },
      { do: "say", text: "hi" },
    ]);
    const { parts } = await run(agent, turn);
    expect(parts).toEqual([
      { kind: "reasoning", text: "hmm", provider: { scripted: { signature: "s" } } },
      { kind: "text", text: "hi" },
    ]);
    expect(turn.emitted).toEqual([
      { text: "hmm", kind: "reasoning" },
      { text: "hi", kind: "text" },
    ]);
  });

  test("calls are requested, even with duplicate ids", async () => {
    const { agent, turn } = setUp([
      { do: "say", text: "I look." },
      { do: "call", name: "echo", input: { n: 1 }, id: "x" },
      { do: "call", name: "echo", input: { n: 2 }, id: "x" },
    ]);
    const result = await run(agent, turn);
    expect(result).toMatchObject({ next: "turn", finish: "calls" });
    expect(result.calls).toMatchObject([
      { name: "echo", input: { n: 1 }, provider: { id: "x" } },
      { name: "echo", input: { n: 2 }, provider: { id: "x" } },
    ]);
    expect(result.parts).toBeUndefined();
  });

  test("an unusual order of text and calls is kept", async () => {
    const { agent, turn } = setUp([
      { do: "call", name: "echo" },
      { do: "say", text: "and" },
    ]);
    expect((await run(agent, turn)).parts).toEqual([
      { kind: "call", index: 0 },
      { kind: "text", text: "and" },
    ]);
  });

  test("calls that the provider executed are kept and not executed", async () => {
    const call = {
      type: "tool-call",
      toolCallId: "p",
      toolName: "search",
      input: "{}",
      providerExecuted: true,
    } as const;
    const result = { type: "tool-result", toolCallId: "p", toolName: "search", result: ["a"] } as const;
    const { agent, turn } = setUp([
      { do: "part", part: call },
      { do: "part", part: { ...result, preliminary: true } },
      { do: "part", part: result },
      { do: "say", text: "found" },
    ]);
    const { calls, parts, next } = await run(agent, turn);
    expect([calls, next]).toEqual([undefined, "end"]);
    expect(parts).toEqual([
      { kind: "provider", provider: call },
      { kind: "provider", provider: result },
      { kind: "text", text: "found" },
    ]);
  });

  test("deltas without a start, ends without a block and empty deltas are tolerated", async () => {
    const { agent, turn } = setUp([
      { do: "part", part: { type: "text-end", id: "never" } },
      { do: "part", part: { type: "text-delta", id: "a", delta: "" } },
      { do: "part", part: { type: "text-delta", id: "a", delta: "x" } },
      { do: "part", part: { type: "ping" } },
      { do: "part", part: { type: "text-delta", id: "a", delta: "y" } },
    ]);
    expect(await run(agent, turn)).toEqual({ next: "end", finish: "stop", ...told });
    expect(turn.text).toBe("xy");
  });

  test.each([
    ["stop", "stop"],
    ["tool-calls", "stop"],
    ["length", "length"],
    ["content-filter", "refusal"],
    ["other", "other"],
  ] as const)("a finish of %s is %s", async (reason, finish) => {
    const { agent, turn } = setUp([
      { do: "say", text: "hi" },
      { do: "finish", reason },
    ]);
    expect((await run(agent, turn)).finish).toBe(finish);
  });

  test("a call that was cut off at the length limit is dropped", async () => {
    const { agent, turn } = setUp([
      { do: "call", name: "echo", input: { n: 1 } },
      { do: "call", name: "echo", input: '{"n": ' },
      { do: "finish", reason: "length" },
    ]);
    const { calls, finish } = await run(agent, turn);
    expect(calls?.map(({ input }) => input)).toEqual([{ n: 1 }]);
    expect(finish).toBe("calls");
    expect(turn.text).toContain("1 of the calls");
  });

  test("a refused answer is not acted upon", async () => {
    const { agent, turn } = setUp([
      { do: "call", name: "echo" },
      { do: "finish", reason: "content-filter" },
    ]);
    expect(await run(agent, turn)).toMatchObject({ next: "end", finish: "refusal" });
  });

  test("calls beyond the limit fail with a message, those beyond the engine's limit are left out", async () => {
    const { agent, turn } = setUp(Array.from({ length: 300 }, () => ({ do: "call", name: "echo" }) as const));
    const { calls = [] } = await run(agent, turn);
    expect(calls).toHaveLength(256);
    expect(() => calls[CALLS_PER_TURN_MAX]?.execute({} as never)).toThrow("64 calls");
    expect(turn.text).toBe("[44 of the calls were not made.]");
  });

  test("an answer that is too large for the log is reduced to its text and calls", async () => {
    const { agent, turn } = setUp([
      { do: "think", text: "x".repeat(1024 * 1024), signature: "s" },
      { do: "call", name: "echo" },
    ]);
    const { parts, calls } = await run(agent, turn);
    expect([parts, calls?.length]).toEqual([undefined, 1]);
  });

  test("an answer without an end is aborted", async () => {
    const { agent, turn } = setUp(
      Array.from({ length: 5 }, () => ({ do: "say", text: "x".repeat(1024 * 1024) }) as const),
    );
    await expect(agent(turn)).rejects.toMatchObject({
      code: "model_error",
      message: expect.stringContaining("longer"),
    });
  });

  test("G18: without figures of the provider the usage is estimated, and marked as such", async () => {
    const { agent, turn } = setUp(
      [
        { do: "say", text: "12345" },
        { do: "finish", usage: {} },
      ],
      { tools: {} },
    );
    expect((await run(agent, turn)).usage).toEqual({ inputTokens: 2, outputTokens: 2, estimated: true });
  });
});

describe("a run that ends without a request", () => {
  test.each([
    [{ turns: 3 }, "The run's budget of 3 turns is used up."],
    [{ tokens: 30 }, "The run's budget of 30 tokens is used up."],
    [{ cost: { max: 2, of: () => 2 } }, "The run's budget of 2 is used up."],
  ])("budget %o", async (budget, note) => {
    const { agent, turn, model } = setUp([], { budget });
    turn.spent = { turns: 3, inputTokens: 20, outputTokens: 10, estimated: false };
    await expect(agent(turn)).rejects.toThrow("Cancelled");
    expect(turn.stops).toEqual([note]);
    expect(model.requests).toEqual([]);
  });

  test("the default budget is a hundred turns", async () => {
    const { agent, turn } = setUp([]);
    turn.spent = { ...turn.spent, turns: 100 };
    await expect(agent(turn)).rejects.toThrow("Cancelled");
  });

  const round = (n: number, result: string): readonly Message[] => [
    {
      role: "assistant",
      runId: "run_1",
      text: "again",
      calls: [{ callId: `call_1.${n}`, name: "echo", input: { same: true } }],
      finish: { kind: "calls" },
    },
    {
      role: "tool",
      runId: "run_1",
      results: [{ callId: `call_1.${n}`, name: "echo", outcome: { kind: "completed" }, result }],
    },
  ];
  const rounds = (count: number, result = (_: number) => "same") =>
    Array.from({ length: count }, (_, n) => round(n, result(n))).flat();

  test("the run is stopped when a call has the same result for the sixth time", async () => {
    const { agent, turn, model } = setUp([]);
    turn.messages.push(...rounds(6));
    await expect(agent(turn)).rejects.toThrow("Cancelled");
    expect(turn.stops[0]).toContain("echo was called with the same input and the same result in 6 turns");
    expect(model.requests).toEqual([]);
  });

  test.each([
    ["five times are not too often", rounds(5), {}],
    ["another result is progress", rounds(9, String), {}],
    ["the loop guard is off", rounds(20), { loopGuard: false }],
    ["it was in another run", rounds(9).map((one) => ({ ...one, runId: "run_0" as const })), {}],
  ] as const)("the run continues: %s", async (_, messages, options) => {
    const { agent, turn } = setUp([{ do: "say", text: "on" }], options);
    turn.messages.push(...messages);
    expect(await run(agent, turn)).toMatchObject({ finish: "stop" });
  });

  test("stopWhen is called after calls, and ends the run", async () => {
    const asked: unknown[] = [];
    const { agent, turn, model } = setUp([], { stopWhen: (soFar) => asked.push(soFar) > 0 });
    turn.messages.push(...rounds(2));
    turn.spent = { ...turn.spent, turns: 2 };
    expect(await run(agent, turn)).toEqual({ next: "end" });
    const call = { name: "echo", input: { same: true }, outcome: { kind: "completed" }, result: "same" };
    expect(asked).toEqual([{ turns: 2, calls: [call, call], lastCalls: [call], text: "again" }]);
    expect(model.requests).toEqual([]);
  });

  test("stopWhen is not called before the first calls", async () => {
    const { agent, turn } = setUp([{ do: "say", text: "on" }], { stopWhen: () => true });
    expect(await run(agent, turn)).toMatchObject({ finish: "stop" });
  });
});

describe("compaction", () => {
  const long: Message = {
    role: "assistant",
    runId: "run_1",
    text: "x".repeat(500),
    calls: [],
    finish: { kind: "end" },
  };
  const summed = { inputTokens: 20, outputTokens: 10, estimated: false };

  function tooLong(summary: readonly ModelStep[], answer: readonly ModelStep[] = [{ do: "say", text: "done" }]) {
    const model = scriptedModel(summary, answer);
    const { turn, clock } = setUp([]);
    turn.messages.unshift({ role: "user", runId: "run_0", text: "before" }, { ...long, runId: "run_0" });
    const agent = modelAgent({ model, compaction: { aboveTokens: 100 }, retry: { attemptsMax: 1 } });
    return { agent, turn, clock, model };
  }

  test("a long conversation is summarised first, and the summary counts as usage", async () => {
    const { agent, turn, model } = tooLong([{ do: "say", text: "In short." }]);
    expect(await run(agent, turn)).toMatchObject({ finish: "stop", usage: summed });
    expect(turn.summaries).toEqual(["In short."]);
    expect(turn.text).toBe("done");
    expect(JSON.stringify(model.requests[1]?.options.prompt)).toContain("In short.");
    expect(JSON.stringify(model.requests[1]?.options.prompt)).not.toContain("xxx");
  });

  test("messages that arrive during the summary reach the model", async () => {
    const gate = new Gate();
    const { agent, turn, model } = tooLong([
      { do: "wait", for: gate },
      { do: "say", text: "In short." },
    ]);
    const result = run(agent, turn);
    await model.nextRequest();
    turn.steers.push({ text: "and hurry" });
    gate.open();
    await result;
    expect(model.requests[1]?.options.prompt.at(-1)).toMatchObject({
      role: "user",
      content: [{}, {}, { text: "hello" }, { text: "and hurry" }],
    });
  });

  test("without a summary the whole prompt is tried, and a rejection reports both reasons", async () => {
    const refuse = (message: string): readonly ModelStep[] => [
      { do: "fail", error: Object.assign(new Error(message), { statusCode: 400 }) },
      { do: "connect" },
    ];
    const fine = tooLong(refuse("no summary"));
    expect(await run(fine.agent, fine.turn)).toMatchObject({ finish: "stop" });
    const refused = tooLong(refuse("no summary"), refuse("too long"));
    await expect(refused.agent(refused.turn)).rejects.toMatchObject({
      code: "model_rejected",
      message: expect.stringMatching(/too long.*no summary/),
    });
  });

  test("a conversation that cannot get shorter is not summarised", async () => {
    const { turn, agent } = setUp([{ do: "say", text: "hi" }], { compaction: { aboveTokens: 1 } });
    turn.messages.push({ role: "user", runId: "run_2", text: "x".repeat(500) });
    expect(await run(agent, turn)).toMatchObject({ finish: "stop" });
    expect(turn.summaries).toEqual([]);
  });
});

describe("options", () => {
  test.each([
    [{ modle: 1 }, 'does not know "modle"'],
    [{ budget: { truns: 1 } }, 'budget does not know "truns"'],
    [{ budget: { turns: 0 } }, "budget: turns"],
    [{ retry: { attemptsMax: 0 } }, "retry: attemptsMax"],
    [{ settings: { prompt: [] } }, 'settings does not know "prompt"'],
    [{ compaction: {} }, "aboveTokens"],
    [{ model: "gpt" }, "got string"],
    [{ model: { specificationVersion: "v2", modelId: "old" } }, "version v2"],
  ])("%o is refused", (options, words) => {
    const given = { model: scriptedModel(), ...options } as unknown as ModelAgentOptions;
    expect(() => modelAgent(given)).toThrow(words);
    expect(() => modelAgent(given)).toThrow(expect.objectContaining({ code: "invalid" }));
  });

  test("model and system may depend on the turn; settings are sent with the request", async () => {
    const model = scriptedModel([]);
    const { turn } = setUp([]);
    const agent = modelAgent({
      model: () => Promise.resolve(model),
      system: ({ runId }) => `You serve ${runId}.`,
      settings: { temperature: 0, headers: { a: "b" } },
    });
    await agent(turn);
    expect(model.requests[0]?.options).toMatchObject({
      temperature: 0,
      headers: { a: "b" },
      prompt: [{ role: "system", content: "You serve run_1." }, { role: "user" }],
    });
    expect(model.requests[0]?.options.tools).toBeUndefined();
  });

  test("a logged call is resumed by its tool", () => {
    const { agent } = setUp([]);
    expect(agent.resume?.({ callId: "call_1.1", name: "echo", input: {} })).toMatchObject({ name: "echo" });
    expect(agent.resume?.({ callId: "call_1.1", name: "gone", input: {} })).toBeUndefined();
  });

  test("calls that are resumed after a restart share the slots of their run: `parallelMax` holds", () => {
    const { agent } = setUp([], { parallelMax: 2 });
    const held: (() => void)[] = [];
    const take = (callId: CallId): void =>
      void agent.resume?.({ callId, name: "echo", input: {} })?.slots?.take((giveBack) => held.push(giveBack));
    for (const callId of ["call_1.1", "call_1.2", "call_1.3"] as const) take(callId);
    expect(held).toHaveLength(2);
    // Another run has its own slots.
    take("call_2.1");
    expect(held).toHaveLength(3);
    held[0]?.();
    expect(held).toHaveLength(4);
  });
});
