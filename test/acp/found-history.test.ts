// Regression tests for reopened sessions: only the sender of a prompt learned that its run had failed.
import { tmpdir } from "node:os";
import { expect, onTestFinished, test } from "vitest";
import { acpAgent } from "../../src/protocols/acp/agent/acp-agent.ts";
import { openBelay } from "../../src/sdk/belay.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { invalidMessages } from "./message-schema.ts";
import { RawClient } from "./raw-client.ts";
import { updateOf, type Version } from "./transcript.ts";

async function opened() {
  const agent = (): never => {
    throw new Error("it broke");
  };
  const belay = await openBelay({ agent, store: ":memory:", directories: "any" });
  onTestFinished(async () => void (await belay.close({ mode: "cancel", limitMs: 1_000 })));
  return acpAgent({ control: belay, clock: systemClock, version: "0" });
}

const NOTICE = { sessionUpdate: "notice", severity: "error", title: "The run has failed", description: "it broke" };

const noticesOf = ({ transcript }: RawClient) =>
  transcript.said.flatMap((one) => (updateOf(one)?.update.sessionUpdate === "notice" ? [updateOf(one)?.update] : []));

const load = (client: RawClient, version: Version, sessionId: string) => {
  const place = { sessionId, cwd: tmpdir(), mcpServers: [] };
  if (version === 1) return client.ask("session/load", place);
  return client.ask("session/resume", { ...place, replayFrom: { type: "start" } });
};

test.each([1, 2] as const)("reopening a session reports a run that has failed, v%d", async (version) => {
  const acp = await opened();
  const [sender, later] = await Promise.all([RawClient.open(acp, 1), RawClient.open(acp, version)]);
  const session = await sender.newSession(tmpdir());
  const prompt = sender.prompt(session, "go");
  await sender.send(prompt);
  expect((await sender.answer(prompt.id)).error?.message).toBe("it broke");
  expect(noticesOf(sender)).toEqual([]);
  await load(later, version, session);
  expect(noticesOf(later)).toMatchObject([NOTICE]);
  expect(invalidMessages(later.transcript.said, version)).toEqual([]);
});

test("a second client is notified of a failed run, for which it gets no answer, v1", async () => {
  const acp = await opened();
  const [sender, other] = await Promise.all([RawClient.open(acp, 1), RawClient.open(acp, 1)]);
  const session = await sender.newSession(tmpdir());
  await load(other, 1, session);
  await sender.send(sender.prompt(session, "go"));
  await other.transcript.when(() => noticesOf(other)[0]);
  expect(noticesOf(other)).toMatchObject([NOTICE]);
});
