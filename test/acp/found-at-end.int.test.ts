// Regression tests for the end of the input: a prompt that arrived with it was lost.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AnyMessage } from "@agentclientprotocol/sdk";
import { expect, onTestFinished, test } from "vitest";
import { EditorDisconnect, EXIT_MS_MAX } from "../../src/cli/commands/acp/editor-disconnect.ts";
import type { SessionId } from "../../src/core/model/ids.ts";
import type { RunControl } from "../../src/ports/control.ts";
import { acpAgent } from "../../src/protocols/acp/agent/acp-agent.ts";
import { loopTurn } from "../../src/protocols/acp/agent/loop-turn.ts";
import { openBelay } from "../../src/sdk/belay.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { manualClock } from "../../src/testing/manual-clock.ts";
import { inMemory } from "./byte-line.ts";
import { greeting, RawClient } from "./raw-client.ts";
import { fieldsOf, textOf, type Version } from "./transcript.ts";

/** Waits until it is stopped. */
const waits = ({ signal }: { readonly signal: AbortSignal }): Promise<string> =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));

test.each([1, 2] as const)("a prompt that is followed by the end of the input is accepted, v%d", async (v) => {
  const belay = await openBelay({ agent: waits, store: ":memory:", directories: "any" });
  onTestFinished(async () => void (await belay.close({ mode: "cancel", limitMs: 1_000 })));
  const seen: number[] = [];
  const acp = acpAgent({ control: belay, clock: systemClock, version: "0" });
  const line = inMemory({
    connect: (stream) =>
      acp.connect(stream, {
        atEnd: async ({ runs, settled }) => {
          seen.push(runs.length);
          await Promise.all(runs.map((run) => run.cancel()));
          await settled();
        },
      }),
  });
  const reader = line.stream.readable.getReader();
  const session = await opened(line.write, reader, v);
  const prompts = [3, 4].map((id) => ({
    ...{ jsonrpc: "2.0", id, method: "session/prompt" },
    params: { sessionId: session, prompt: [{ type: "text", text: "go" }] },
  }));
  const written = line.write(prompts.map((one) => `${JSON.stringify(one)}\n`).join(""));
  const dropped = written.then(() => line.drop());
  const answered: unknown[] = [];
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    if ("id" in value && !("method" in value)) answered.push(value.id);
    if (answered.length === 2) break;
  }
  await dropped;
  expect(seen).toEqual([2]);
  expect(answered.toSorted()).toEqual([3, 4]);
});

test("queued prompts are cancelled before the live one, so that none begins when it ends", async () => {
  const order: string[] = [];
  const run = (sessionId: SessionId, name: string): RunControl => {
    const cancel: RunControl["cancel"] = async () => {
      order.push(`asked ${name}`);
      // As long as a host takes to record it.
      await new Promise((resolve) => setImmediate(resolve));
      order.push(name);
      return { kind: "stopping", first: true, since: 1 };
    };
    return { sessionId, cancel } as Partial<RunControl> as RunControl;
  };
  const log = { info: () => {}, warn: () => {} };
  const answered = async (): Promise<void> => {};
  const end = new EditorDisconnect({ policy: "cancel", kept: "", answered, log, clock: manualClock() });
  const runs = [run("ses_1", "live"), run("ses_1", "next"), run("ses_2", "other"), run("ses_1", "last")];
  await end.handle({ runs, settled: async () => {} });
  expect(order.indexOf("asked live")).toBeGreaterThan(order.indexOf("last"));
  expect(order.indexOf("asked live")).toBeGreaterThan(order.indexOf("next"));
  expect(order).toContain("other");
});

test("keep: a prompt in flight to the server is accepted before the program exits", async () => {
  const accepted = Promise.withResolvers<Awaited<RunControl["accepted"]>>();
  const run = { accepted: accepted.promise } as Partial<RunControl> as RunControl;
  const clock = manualClock();
  const log = { info: () => {}, warn: () => {} };
  const end = new EditorDisconnect({ policy: "keep", kept: "", answered: async () => {}, log, clock });
  let left = false;
  const coming = end.handle({ runs: [run], settled: async () => {} }).then(() => {
    left = true;
  });
  await clock.advance(1_000);
  expect(left).toBe(false);
  accepted.reject(new Error("whatever became of it"));
  await coming;
  expect(clock.pending).toEqual([]);
});

test("keep: the wait for a server that does not answer is bounded", async () => {
  const run = { accepted: new Promise(() => {}) } as Partial<RunControl> as RunControl;
  const clock = manualClock();
  const log = { info: () => {}, warn: () => {} };
  const end = new EditorDisconnect({ policy: "keep", kept: "", answered: async () => {}, log, clock });
  const coming = end.handle({ runs: [run], settled: async () => {} });
  await clock.advance(EXIT_MS_MAX);
  await coming;
});

test.each([1, 2] as const)(
  "a prompt that resumes at the next start is not answered with a request to send it again, v%d",
  async (v) => {
    const dir = mkdtempSync(join(tmpdir(), "belay-found-"));
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
    const belay = await openBelay({ agent: waits, store: join(dir, "belay.db"), directories: "any" });
    const acp = acpAgent({ control: belay, clock: systemClock, version: "0" });
    const client = await RawClient.open(acp, v);
    const session = await client.newSession(tmpdir());
    const [live, held] = [client.prompt(session, "go"), client.prompt(session, "go too")];
    await client.send(live, held);
    // The second prompt waits for an answer in either version.
    while ((await belay.session(session as SessionId).queue.list()).length === 0) await loopTurn();
    const answer = client.answer(held.id);
    await belay.close({ mode: "park", limitMs: 1_000 });
    const { error } = await answer;
    const { runId, retryable, hint } = fieldsOf(error?.data);
    expect(error?.code).toBe(-32013);
    expect({ runId, retryable }).toEqual({ runId: expect.stringMatching(/^run_/), retryable: false });
    expect(hint).toMatch(/do not send it again/);
  },
);

type Reader = Pick<ReadableStreamDefaultReader<AnyMessage>, "read">;

async function opened(write: (text: string) => Promise<void>, reader: Reader, version: Version): Promise<string> {
  const ask = async (id: number, method: string, params: object): Promise<unknown> => {
    await write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    for (;;) {
      const { value } = await reader.read();
      const message = fieldsOf(value);
      if (message.id === id) return message.result;
    }
  };
  await ask(1, "initialize", greeting(version));
  return textOf(fieldsOf(await ask(2, "session/new", { cwd: tmpdir(), mcpServers: [] })).sessionId);
}
