// What was found with foreign agents that speak the protocol badly: what is said of them must be true.
import { expect, test } from "vitest";
import { externalAgentFixture } from "../acp-client/external-agent-fixture.ts";

/** A program that greets, opens a session, and answers each prompt with the lines it was given. */
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
  await using house = await externalAgentFixture({ agent: { command } });
  return await house.session.prompt("go").outcome;
}

test.each([
  ["null", '{"jsonrpc":"2.0","id":ID,"result":null}'],
  ["nothing", '{"jsonrpc":"2.0","id":ID,"result":{}}'],
  ["a number", '{"jsonrpc":"2.0","id":ID,"result":7}'],
])("an agent that answers its prompt with %s has not ended, and has not completed it either", async (_, line) => {
  const outcome = await outcomeOf(line);
  expect(outcome).toMatchObject({ kind: "failed", code: "agent_failed" });
  expect(outcome).toMatchObject({ message: "foreign answered the prompt, and did not say how it ended." });
});

test("an agent that was ended since it said too long a line is not said to have ended by itself", async () => {
  const outcome = await outcomeOf('{"jsonrpc":"2.0","method":"session/update","params":"LONG"}');
  expect(outcome).toMatchObject({ kind: "failed", code: "agent_ended" });
  expect(outcome).toMatchObject({ message: expect.stringContaining("It was ended here: it said a line of more than") });
});
