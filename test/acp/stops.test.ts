// All methods that stop something, in each version, as requests and as notifications: none is lost because of its form.
import { tmpdir } from "node:os";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { acpAgent } from "../../src/protocols/acp/agent/acp-agent.ts";
import { STOPS } from "../../src/protocols/acp/agent/methods/stops.ts";
import { type Belay, openBelay } from "../../src/sdk/belay.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { type ScriptedAgent, scriptedAgent } from "../../src/testing/scripted-agent.ts";
import { greeting, RawClient } from "./raw-client.ts";
import type { Fields, Version } from "./transcript.ts";

let agent: ScriptedAgent;
let belay: Belay;
beforeAll(async () => {
  agent = scriptedAgent();
  // The tools here never return: a stop waits for no more than its grace period.
  belay = await openBelay({ agent, store: ":memory:", directories: "any", graceMs: 1 });
});
afterAll(() => belay.close({ mode: "cancel", limitMs: 1_000 }));

const FORMS = ["request", "notification"] as const;
/** Covered by the integration tests, because no process is started here. */
const ELSEWHERE = "terminal/cancel";

const cells = ([1, 2] as const).flatMap((version) =>
  Object.entries(STOPS)
    .filter(([method, { versions }]) => versions.includes(version) && method !== ELSEWHERE)
    .flatMap(([method]) => FORMS.map((form) => [version, method, form] as const)),
);

/** Irrelevant fields in unexpected forms. */
const ODD: readonly Fields[] = [
  { reason: "x".repeat(5_000) },
  { reason: 7, timeout_ms: "soon", inject_reminder: "no", more: 1 },
  { reason: { note: "why" }, timeoutMs: 1e9, injectReminder: 1 },
];

describe("a stop works in either form", () => {
  test.each(cells.flatMap((cell) => ODD.map((odd) => [...cell, odd] as const)))(
    "version %d: %s as a %s",
    async (version, method, form, odd) => {
      const { client, sessionId } = await opened(version);
      await client.send(client.prompt(sessionId, "work"));
      const turn = await agent.nextTurn();
      const ofCall = method.includes("tool_call");
      const stopped = Promise.withResolvers<void>();
      if (!ofCall) turn.given.signal.addEventListener("abort", () => stopped.resolve());
      const call = turn.given.call("slow", {}, ({ signal }) => {
        if (ofCall) signal.addEventListener("abort", () => stopped.resolve());
        return new Promise(() => {});
      });
      void call.catch(() => {});
      const { runId, toolCallId } = await liveCall(sessionId);
      const params = { timeout_ms: 0, sessionId, runId, toolCallId, ...odd };
      const message = client.request(method, params);
      await client.send(form === "request" ? message : { jsonrpc: "2.0", method, params });
      await stopped.promise;
      expect(turn.given.signal.aborted).toBe(!ofCall);
      if (form === "request") expect((await client.answer(message.id)).error).toBeUndefined();
      await belay.session(sessionId).cancel();
      await client.drop();
    },
  );

  test.each([
    ["_belay/tool_call/cancel", {}, /^_belay\/tool_call\/cancel was refused: .*toolCallId/],
    // The lookup of the process shows that it was handled. A client of the SDK does not send this one.
    [ELSEWHERE, { terminalId: "proc_nowhere" }, /^terminal\/cancel was refused: There is no terminal proc_nowhere\./],
  ])("a notification that is refused is reported: %s", async (method, params, report) => {
    const reported = Promise.withResolvers<string>();
    const { client, sessionId } = await opened(2, reported.resolve);
    await client.send({ jsonrpc: "2.0", method, params: { sessionId, ...params } });
    expect(await reported.promise).toMatch(report);
    await client.drop();
  });

  test("a method that is not in the table is unknown, in version 1 also those of version 2", async () => {
    const { client, sessionId } = await opened(1);
    for (const method of ["tool_call/cancel", "terminal/cancel", "session/stop", "toString"]) {
      expect((await client.ask(method, { sessionId })).error?.code).toBe(-32601);
    }
    await client.drop();
  });
});

async function opened(
  version: Version,
  notice = (_: string): void => {},
): Promise<{ readonly client: RawClient; readonly sessionId: string }> {
  const client = RawClient.connect(acpAgent({ control: belay, clock: systemClock, version: "0", notice }), version);
  await client.ask("initialize", greeting(version));
  const { result } = await client.ask("session/new", { cwd: tmpdir(), mcpServers: [] });
  return { client, sessionId: String((result as Fields).sessionId) };
}

async function liveCall(sessionId: string): Promise<{ readonly runId: string; readonly toolCallId: string }> {
  for await (const event of belay.session(sessionId).events()) {
    if (event.type === "call.requested") return { runId: event.runId, toolCallId: event.callId };
  }
  return expect.fail("no call was requested");
}
