// C5, C6: a model that answers for ever. A byte now and then keeps the line alive, and a flood never ends; both are
// over in a bounded time, and the connection is closed. Over real sockets, with the packages of real providers.
import { describe, expect, test, vi } from "vitest";
import { modelAgent } from "../../src/agent/index.ts";
import { ANSWER_CHARS_MAX } from "../../src/agent/limits.ts";
import { type Belay, openBelay } from "../../src/sdk/belay.ts";
import { manualClock } from "../../src/testing/manual-clock.ts";
import { MODEL_NAMES, type ModelName, modelsAt } from "../fixtures/provider/models.ts";
import { type ProviderServer, startProvider } from "../fixtures/provider/server.ts";

// Floods of text, on a machine that may be busy with other tests.
vi.setConfig({ testTimeout: 60_000 });

const LIMIT_MS = 60 * 60_000;

/** A line that says something now and then is never silent for long enough, however long it goes on. */
const NEVER_SILENT = { silentMs: 2 * LIMIT_MS };

async function open(
  server: ProviderServer,
  name: ModelName,
): Promise<{ belay: Belay; pass(ms: number): Promise<void> }> {
  const clock = manualClock();
  const agent = modelAgent({ model: modelsAt(server.baseURL)[name], system: "Be brief.", idle: NEVER_SILENT });
  const belay = await openBelay({ agent, store: ":memory:", clock, runLimitMs: LIMIT_MS });
  return { belay, pass: async (ms) => void (await clock.advance(ms)) };
}

describe.each(MODEL_NAMES)("%s", (name) => {
  test("C6: an answer that dribbles on is cut by the time limit of its run, and what was said is kept", {
    meta: { id: "G33/run-time-limit-cuts-answer" },
  }, async () => {
    await using server = await startProvider([[{ dribble: "." }]]);
    const { belay, pass } = await open(server, name);
    const session = await belay.createSession();
    const run = session.prompt("go");
    const request = await server.request(0);
    for await (const event of run) if (event.type === "delta") break;
    await pass(LIMIT_MS);
    expect(await run.outcome).toEqual({ kind: "cancelled", reason: { kind: "timeout", limitMs: LIMIT_MS } });
    expect(await request.closed).toBeTypeOf("number");
    expect(await run.text()).toMatch(/^\.+$/);
    await belay.close({ mode: "cancel" });
  });

  test("C6: an answer that never ends is ended at its length, and is not asked for again", {
    meta: { id: "G33/answer-length-bounded" },
  }, async () => {
    await using server = await startProvider([[{ dribble: "x".repeat(256 * 1024) }]]);
    const { belay } = await open(server, name);
    const run = (await belay.createSession()).prompt("go");
    const request = await server.request(0);
    const outcome = await run.outcome;
    expect(outcome).toMatchObject({ kind: "failed", code: "model_error" });
    expect(JSON.stringify(outcome)).toContain(`longer than the limit of ${ANSWER_CHARS_MAX} characters`);
    expect(await request.closed).toBeTypeOf("number");
    expect(server.requests.length).toBe(1);
    await belay.close({ mode: "cancel" });
  });
});
