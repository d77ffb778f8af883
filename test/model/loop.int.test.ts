// The loop over a model, on the whole road: real engine, real provider packages, real sockets, strict providers.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tool as aiTool } from "@ai-sdk/provider-utils";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { tool } from "../../src/agent/index.ts";
import { manualClock } from "../../src/testing/manual-clock.ts";
import { logOf } from "../fixtures/belay.ts";
import { MODEL_NAMES } from "../fixtures/provider/models.ts";
import { startProvider } from "../fixtures/provider/server.ts";
import { checkLog, goesOn, openModelFixture, tools } from "./model-fixture.ts";

const bodyOf = (request: { readonly body: unknown } | undefined): string => JSON.stringify(request?.body);

describe.each(MODEL_NAMES)("%s", (name) => {
  test("text, reasoning, two calls, two turns: the model hears every result, and each cost is kept", async () => {
    await using server = await startProvider([
      [
        { reasoning: "Two files." },
        { endBlock: true },
        { text: "I read both." },
        { call: { name: "read", input: { path: "a" } } },
        { call: { name: "read", input: { path: "b" } } },
        { finish: "calls", usage: { input: 100, output: 10 } },
      ],
      [{ text: "Done." }, { finish: "stop", usage: { input: 200, output: 5 } }],
    ]);
    await using stage = await openModelFixture(server, name);
    const run = stage.session.prompt("go");
    expect(await run.outcome).toEqual({ kind: "completed" });
    const second = bodyOf(server.requests[1]);
    expect(second).toContain("contents of a");
    expect(second).toContain("contents of b");
    const answers = (await stage.session.transcript()).filter((message) => message.role === "assistant");
    expect(answers).toMatchObject([
      { text: "I read both.", usage: { inputTokens: 100, outputTokens: 10, estimated: false } },
      { text: "Done.", finish: { kind: "end" }, usage: { inputTokens: 200, outputTokens: 5, estimated: false } },
    ]);
    expect(server.violations).toEqual([]);
    await goesOn(server, stage.session);
    await checkLog(stage.session, run);
  });

  test("call ids that repeat, malformed arguments, unknown tools: one result each, and the run continues", {
    meta: { id: "G17/malformed-calls-get-results" },
  }, async () => {
    await using server = await startProvider([
      [
        { call: { name: "read", id: "twice", input: { path: "a" } } },
        { call: { name: "read", id: "twice", input: { path: "b" } } },
      ],
      [
        { call: { name: "read", id: "twice", arguments: '{"path":' } },
        { call: { name: "raed", input: { path: "c" } } },
        { call: { name: "read", input: { path: 7 } } },
      ],
      [{ text: "I give up." }],
    ]);
    await using stage = await openModelFixture(server, name);
    const run = stage.session.prompt("go");
    expect(await run.outcome).toEqual({ kind: "completed" });
    const last = bodyOf(server.requests[2]);
    for (const told of ["contents of a", "contents of b", "is not JSON", "Did you mean `read`", "does not fit"]) {
      expect(last).toContain(told);
    }
    expect(server.violations).toEqual([]);
    await checkLog(stage.session, run);
  });

  test("the model receives a denied approval as such, and the provider accepts it", async () => {
    const written: string[] = [];
    const write = tool({
      description: "Writes.",
      input: z.object({ path: z.string() }),
      approval: true,
      execute: ({ path }) => void written.push(path),
    });
    await using server = await startProvider([
      [{ call: { name: "write", input: { path: "a" } } }],
      [{ text: "As you wish." }],
    ]);
    await using stage = await openModelFixture(server, name, { tools: { write } });
    const { session, belay } = stage;
    const run = session.prompt("go");
    await expect.poll(async () => (await session.questions()).length).toBe(1);
    const [question] = await session.questions();
    await belay.questions.deny(question?.id ?? "", { by: "bob", note: "not in this folder" });
    expect(await run.text()).toBe("As you wish.");
    expect(bodyOf(server.requests[1])).toContain("denied by bob: not in this folder");
    expect(written).toEqual([]);
    expect(server.violations).toEqual([]);
  });

  test("a steer that comes during a call is in the next request, once, and ends as taken in", async () => {
    await using server = await startProvider([[{ call: { name: "wait", input: {} } }], [{ text: "All right." }]]);
    await using stage = await openModelFixture(server, name);
    const { session, belay } = stage;
    const run = session.prompt("go");
    await expect.poll(async () => (await session.explain()).live?.calls.length).toBe(1);
    const steer = session.prompt("the other folder, please", { delivery: "steer" });
    await steer.accepted;
    const [call] = (await session.explain()).live?.calls ?? [];
    await belay.cancel(call?.callId ?? "", { remind: false });
    expect(await run.outcome).toEqual({ kind: "completed" });
    expect(await steer.outcome).toEqual({ kind: "completed", into: run.id });
    expect(bodyOf(server.requests[1]).split("the other folder, please").length).toBe(2);
    expect(server.violations).toEqual([]);
  });

  test("a provider that is busy is asked again after the pause it asks for; nothing of it is seen", {
    meta: { id: "model/busy-provider-asked-again" },
  }, async () => {
    const clock = manualClock();
    await using server = await startProvider([[{ status: 429, retryAfter: "7" }], [{ text: "Now." }]]);
    await using stage = await openModelFixture(server, name, { clock });
    const run = stage.session.prompt("go");
    await expect.poll(() => clock.pending.some((timer) => timer.inMs === 7_000)).toBe(true);
    expect(server.requests.length).toBe(1);
    await clock.advance(7_000);
    expect(await run.text()).toBe("Now.");
    expect(server.requests.length).toBe(2);
  });

  test("a stream that breaks after it has said something fails, is not asked again, and its text is kept", async () => {
    await using server = await startProvider([[{ text: "Half of" }, { reset: true }]]);
    await using stage = await openModelFixture(server, name);
    const run = stage.session.prompt("go");
    expect(await run.outcome).toMatchObject({ kind: "failed", code: "model_error" });
    expect(await run.text()).toBe("Half of");
    expect(server.requests.length).toBe(1);
    const body = await goesOn(server, stage.session);
    expect(body).toContain("Half of");
    await checkLog(stage.session, run);
  });

  test("a stream that falls silent fails as a timeout, and its socket is closed", {
    meta: { id: "G33/silent-stream-times-out" },
  }, async () => {
    const clock = manualClock();
    await using server = await startProvider([[{ text: "Wait" }, { hold: "here" }, { silence: true }]]);
    await using stage = await openModelFixture(server, name, { clock, idle: { silentMs: 5_000 } });
    const run = stage.session.prompt("go");
    const request = await server.request(0);
    await server.reached("here");
    await expect.poll(() => stage.session.explain().then(({ live }) => live?.turn)).toBeDefined();
    const ended = run.outcome;
    // The timer is set again from the last sign of life, which may have come after the clock was moved first.
    while (request.closedAt === undefined) await clock.advance(5_000);
    expect(await ended).toMatchObject({ kind: "failed", code: "model_timeout" });
  });

  test.each([
    ["length", { kind: "completed", finish: "length" }],
    ["refusal", { kind: "completed", finish: "refusal" }],
  ] as const)("an answer that ends by %s is distinguished", async (finish, outcome) => {
    await using server = await startProvider([[{ text: "As I was" }, { finish }]]);
    await using stage = await openModelFixture(server, name);
    const run = stage.session.prompt("go");
    expect(await run.outcome).toEqual(outcome);
    const [, answer] = await stage.session.transcript();
    expect(answer).toMatchObject({ role: "assistant", finish: { kind: finish } });
    await goesOn(server, stage.session);
  });

  test("a budget that is used up ends the run by policy, before another request", async () => {
    await using server = await startProvider([[{ call: { name: "read", input: { path: "a" } } }]]);
    await using stage = await openModelFixture(server, name, { budget: { turns: 1 } });
    const run = stage.session.prompt("go");
    expect(await run.outcome).toEqual({
      kind: "cancelled",
      reason: { kind: "policy", note: "The run's budget of 1 turns is used up." },
    });
    expect(server.requests.length).toBe(1);
    await goesOn(server, stage.session);
  });

  test("a model that goes round in circles is stopped by policy", async () => {
    await using server = await startProvider(() => [{ call: { name: "read", input: { path: "a" } } }]);
    await using stage = await openModelFixture(server, name);
    const run = stage.session.prompt("go");
    expect(await run.outcome).toMatchObject({ kind: "cancelled", reason: { kind: "policy" } });
    expect(server.requests.length).toBe(6);
    expect(server.violations).toEqual([]);
  });

  test("a long conversation is summarised, and what arrives meanwhile is in the next request", async () => {
    await using server = await startProvider([
      [{ text: "Boats float. ".repeat(40) }],
      [{ hold: "summarising" }, { text: "They talked about boats." }],
      [{ text: "Aye." }],
    ]);
    await using stage = await openModelFixture(server, name, { compaction: { aboveTokens: 100 } });
    const { session } = stage;
    await session.prompt("Tell me about boats.").outcome;
    const run = session.prompt("And what else?");
    await server.reached("summarising");
    await session.prompt("And ships!", { delivery: "steer" }).accepted;
    server.release("summarising");
    expect(await run.text()).toBe("Aye.");
    const asked = bodyOf(server.requests[2]);
    expect(asked).toContain("They talked about boats.");
    expect(asked).toContain("And what else?");
    expect(asked).toContain("And ships!");
    expect(asked).not.toContain("Boats float.");
    expect(server.violations).toEqual([]);
  });
});

describe("tools", () => {
  test("one that never listens runs in a thread, and a cancel of its call ends it", {
    meta: { id: "G12/spinning-tool-ended" },
  }, async () => {
    const spin = tool({
      description: "Spins.",
      input: z.object({}),
      untrusted: { module: new URL("./spins.ts", import.meta.url), name: "spin" },
    });
    await using server = await startProvider([[{ call: { name: "spin", input: {} } }], [{ text: "Phew." }]]);
    await using stage = await openModelFixture(server, "chat", { tools: { spin } });
    const { session, belay } = stage;
    const run = session.prompt("go");
    await expect.poll(async () => (await session.explain()).live?.calls.length).toBe(1);
    const [call] = (await session.explain()).live?.calls ?? [];
    const receipt = await belay.cancel(call?.callId ?? "", { reason: "enough" });
    expect(receipt).toMatchObject({ ended: { kind: "settled", outcome: { kind: "cancelled" } } });
    // It was ended, not left behind.
    expect(receipt).not.toHaveProperty("ended.outcome.abandoned");
    expect(await run.text()).toBe("Phew.");
  });

  test("those of the AI SDK are taken as they are", async () => {
    const weather = aiTool({
      description: "Weather.",
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }) => ({ city, degrees: 21 }),
    });
    await using server = await startProvider([
      [{ call: { name: "weather", input: { city: "Lisbon" } } }],
      [{ text: "21." }],
    ]);
    await using stage = await openModelFixture(server, "anthropic", { tools: { weather, read: tools.read } });
    expect(await stage.session.prompt("go").text()).toBe("21.");
    expect(bodyOf(server.requests[1])).toContain("degrees");
    expect(server.violations).toEqual([]);
  });

  test("only so many go on at once, and the rest begin in the order of the calls", async () => {
    const begun: string[] = [];
    const gates = new Map<string, () => void>();
    const slow = tool({
      description: "Slow.",
      input: z.object({ n: z.string() }),
      execute: ({ n }) =>
        new Promise<string>((resolve) => {
          begun.push(n);
          gates.set(n, () => resolve(n));
        }),
    });
    const calls = ["1", "2", "3"].map((n) => ({ call: { name: "slow", input: { n } } }));
    await using server = await startProvider([calls, [{ text: "Done." }]]);
    await using stage = await openModelFixture(server, "responses", { tools: { slow }, parallelMax: 2 });
    const { session } = stage;
    const run = session.prompt("go");
    await expect
      .poll(async () => (await session.explain()).live?.calls.map((call) => call.waits))
      .toEqual([undefined, undefined, "slot"]);
    expect(begun).toEqual(["1", "2"]);
    gates.get("2")?.();
    await expect.poll(() => begun).toEqual(["1", "2", "3"]);
    gates.get("3")?.();
    gates.get("1")?.();
    expect(await run.text()).toBe("Done.");
    const results = (await session.transcript()).flatMap((one) => (one.role === "tool" ? one.results : []));
    expect(results.map(({ result }) => result)).toEqual(["1", "2", "3"]);
  });
});

test("G6: a prompt that was withdrawn before it began is in no request", async () => {
  await using server = await startProvider([[{ call: { name: "wait", input: {} } }], [{ text: "All right." }]]);
  await using stage = await openModelFixture(server, "anthropic");
  const { session, belay } = stage;
  const run = session.prompt("go");
  await expect.poll(async () => (await session.explain()).live?.calls.length).toBe(1);
  await session.prompt("delete everything").cancel();
  const [call] = (await session.explain()).live?.calls ?? [];
  await belay.cancel(call?.callId ?? "");
  expect(await run.outcome).toEqual({ kind: "completed" });
  expect(bodyOf(server.requests[1])).not.toContain("delete everything");
  const body = await goesOn(server, session);
  expect(body).not.toContain("delete everything");
  expect(body).not.toContain("not begun to answer");
  const shown = (await session.transcript()).filter((one) => one.role === "user" && one.withdrawn === true);
  expect(shown).toMatchObject([{ text: "delete everything" }]);
});

test.each(MODEL_NAMES)(
  "G35: a key that %s quotes in a refusal is in no outcome, event or byte of the store",
  async (name) => {
    const key = "sk-proj-FAKESECRETfakesecretFAKESECRET1234";
    const dir = mkdtempSync(join(tmpdir(), "belay-model-"));
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
    const message = `Incorrect API key provided: ${key}.`;
    await using server = await startProvider([[{ status: 401, message }]]);
    await using stage = await openModelFixture(server, name, { store: join(dir, "belay.db") });
    const { session } = stage;
    const outcome = await session.prompt("go").outcome;
    expect(outcome).toMatchObject({ kind: "failed" });
    const kept = Buffer.concat(readdirSync(dir).map((file) => readFileSync(join(dir, file)))).toString("latin1");
    for (const text of [JSON.stringify([outcome, await session.transcript(), await logOf(session)]), kept]) {
      expect(text).toContain("Incorrect API key provided");
      for (const form of [key, encodeURIComponent(key), btoa(key).slice(4, -4)]) expect(text).not.toContain(form);
    }
  },
);
