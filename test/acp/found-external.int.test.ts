// Regression tests for external agents that violate the protocol: error messages about them must be correct.
import { expect, test } from "vitest";
import { externalAgentFixture } from "../acp-client/external-agent-fixture.ts";

/** A program that initializes, opens a session, and answers each prompt with the given lines. */
const BAD = `
const [lines] = process.argv.slice(1).map((text) => JSON.parse(text));
const write = (value) => process.stdout.write(JSON.stringify(value) + "\\n");
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (method === "initialize") write({ jsonrpc: "2.0", id, result: { protocolVersion: 1, agentCapabilities: {} } });
  if (method === "session/new") write({ jsonrpc: "2.0", id, result: { sessionId: "s" } });
  if (method !== "session/prompt") return;
  const long = "x".repeat(33 * 1024 * 1024);
  for (const one of lines) process.stdout.write(one.replace("ID", id).replace("LONG", long) + "\\n");
});`;

async function outcomeOf(...lines: readonly string[]) {
  const command = [process.execPath, "-e", BAD, JSON.stringify(lines)] as const;
  await using fixture = await externalAgentFixture({ agent: { command } });
  return await fixture.session.prompt("go").outcome;
}

test.each([
  ["null", '{"jsonrpc":"2.0","id":ID,"result":null}'],
  ["nothing", '{"jsonrpc":"2.0","id":ID,"result":{}}'],
  ["a number", '{"jsonrpc":"2.0","id":ID,"result":7}'],
])("an answer of %s to a prompt is neither an end of the agent nor a completed prompt", async (_, line) => {
  const outcome = await outcomeOf(line);
  expect(outcome).toMatchObject({ kind: "failed", code: "agent_failed" });
  expect(outcome).toMatchObject({ message: "foreign answered the prompt without a stop reason." });
});

test("an agent that Belay ended for a line that is too long is not reported as ended by itself", async () => {
  const outcome = await outcomeOf('{"jsonrpc":"2.0","method":"session/update","params":"LONG"}');
  expect(outcome).toMatchObject({ kind: "failed", code: "agent_ended" });
  expect(outcome).toMatchObject({ message: expect.stringContaining("Belay ended it: it wrote a line of more than") });
});
