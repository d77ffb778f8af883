// An editor, Belay, and an external agent behind it: the agent's features reach the editor, and the editor's settings
// reach the agent.
import { type AnyMessage, client, type SessionUpdate, type Stream } from "@agentclientprotocol/sdk";
import { expect, test } from "vitest";
import { acpAgent } from "../../src/protocols/acp/agent/acp-agent.ts";
import { AgentSessions } from "../../src/protocols/acp/client/agent-sessions.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { invalidMessages } from "../acp/message-schema.ts";
import { type ExternalAgentFixture, externalAgentFixture } from "../acp-client/external-agent-fixture.ts";
import type { Skills } from "../acp-client/external-program.ts";
import { mark, marked, markedAtLeast } from "../fixtures/marked-process.ts";

interface Editor extends AsyncDisposable {
  readonly fixture: ExternalAgentFixture;
  readonly updates: SessionUpdate[];
  readonly sent: AnyMessage[];
  readonly sessionId: string;
  readonly opened: { readonly [key: string]: unknown };
  request(method: string, params?: object): Promise<{ readonly [key: string]: unknown }>;
  prompt(text: string): Promise<unknown>;
  sees(isIt: (update: SessionUpdate) => boolean): Promise<SessionUpdate>;
}

async function editor(skills: Skills = {}): Promise<Editor> {
  const updates = new AgentSessions();
  const fixture = await externalAgentFixture({ skills, agent: { updates } });
  const [toAgent, toClient] = [new TransformStream<AnyMessage>(), new TransformStream<AnyMessage>()];
  const sent: AnyMessage[] = [];
  const spy = new TransformStream<AnyMessage, AnyMessage>({
    transform(message, controller) {
      sent.push(message);
      controller.enqueue(message);
    },
  });
  const stream: Stream = { readable: toAgent.readable, writable: toClient.writable };
  const acp = acpAgent({ control: fixture.belay, clock: systemClock, version: "0", behind: updates });
  acp.connect(stream);
  const seen: SessionUpdate[] = [];
  const waiting = new Set<() => void>();
  const connection = client({ name: "editor" })
    .onNotification("session/update", ({ params }) => {
      seen.push(params.update);
      for (const look of waiting) look();
    })
    .connect({ readable: toClient.readable.pipeThrough(spy), writable: toAgent.writable });
  const ask = (method: string, params: object) => connection.agent.request<{ [key: string]: unknown }>(method, params);
  await ask("initialize", { protocolVersion: 1, clientCapabilities: {} });
  const opened = await ask("session/new", { cwd: fixture.dir, mcpServers: [] });
  const sessionId = String(opened.sessionId);
  return {
    ...{ fixture, updates: seen, sent, sessionId, opened },
    request: (method, params = {}) => ask(method, { sessionId, ...params }),
    prompt: (text) => ask("session/prompt", { sessionId, prompt: [{ type: "text", text }] }),
    sees: (isIt) =>
      new Promise((resolve) => {
        const look = (): void => {
          const found = seen.find(isIt);
          if (found === undefined) return;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
      }),
    [Symbol.asyncDispose]: () => fixture[Symbol.asyncDispose](),
  };
}

const says = (text: string) => (update: SessionUpdate) =>
  update.sessionUpdate === "agent_message_chunk" &&
  update.content.type === "text" &&
  update.content.text.includes(text);

test("plans, commands, usage, titles and unknown updates reach the editor unchanged", async () => {
  await using one = await editor();
  await one.prompt("extras");
  // As they were sent: the client's SDK drops unknown ones.
  const updates = one.sent.flatMap((message) => ("params" in message ? [Object(message.params).update] : []));
  const kinds = updates.map((update) => Object(update).sessionUpdate);
  for (const kind of ["plan", "available_commands_update", "usage_update", "session_info_update", "something_newer"]) {
    expect(kinds).toContain(kind);
  }
  expect(updates).toContainEqual({ sessionUpdate: "something_newer", fields: { of: "tomorrow" } });
});

test("a call keeps its kind, its status, its lines, its diff and its picture", async () => {
  await using one = await editor();
  await one.prompt("extras");
  const call = one.updates.find((update) => update.sessionUpdate === "tool_call" && update.title === "Edit x");
  expect(call).toMatchObject({ kind: "edit", status: "pending", locations: [{ path: "/tmp/x", line: 7 }] });
  const id = call?.sessionUpdate === "tool_call" ? call.toolCallId : "";
  const own = one.updates.filter((update) => update.sessionUpdate === "tool_call_update" && update.toolCallId === id);
  expect(own).toMatchObject([
    { status: "in_progress", content: [{ content: { text: "line 1" } }] },
    {
      status: "completed",
      content: [
        { type: "content", content: { type: "text", text: "line 1" } },
        { type: "diff", path: "/tmp/x", oldText: "old", newText: "new" },
        { type: "content", content: { type: "image", data: "AAAA", mimeType: "image/png" } },
      ],
    },
  ]);
  const known = one.sent.filter((message) => !JSON.stringify(message).includes("something_newer"));
  const said = known.map((message) => ({ by: "agent", message }) as never);
  expect(invalidMessages(said, 1).filter((flaw) => !flaw.includes("answers nothing"))).toEqual([]);
});

test("the agent's modes, models and options are shown when it has opened its session, and can be set", async () => {
  await using one = await editor({ menus: true });
  // Set before it runs: sent before its first prompt.
  await one.request("session/set_model", { modelId: "small" });
  await one.request("session/set_mode", { modeId: "plan" });
  await one.prompt("settings");
  expect(await one.sees(says("small"))).toMatchObject({ content: { text: '[{"model":"small"},{"mode":"plan"}]' } });
  expect(await one.sees(({ sessionUpdate }) => sessionUpdate === "config_option_update")).toMatchObject({
    configOptions: [{ id: "effort" }],
  });
  expect(await one.request("session/set_config_option", { configId: "effort", value: "low" })).toMatchObject({
    configOptions: [{ id: "effort", currentValue: "low" }],
  });
  await one.prompt("settings");
  await one.sees(says('{"effort":"low"}'));
  const again = await one.request("session/load", { cwd: one.fixture.dir, mcpServers: [] });
  expect(again).toMatchObject({ modes: { currentModeId: "build" }, configOptions: [{ id: "effort" }] });
});

test("G19: a close ends the session's agent with all its processes", async () => {
  await using one = await editor();
  const id = mark();
  await one.prompt(`leave ${id} env -i`);
  await markedAtLeast(id, 2);
  expect(await one.request("session/close")).toEqual({});
  expect(marked(id)).toEqual([]);
  const session = one.fixture.belay.session(one.sessionId);
  expect(await session.processes.list()).toEqual([]);
});

test("a stop of one call that cannot be stopped alone is refused by every method", async () => {
  await using one = await editor();
  const answer = one.prompt("wait");
  const call = await one.sees((update) => update.sessionUpdate === "tool_call" && update.title === "Long work");
  const toolCallId = call.sessionUpdate === "tool_call" ? call.toolCallId : "";
  for (const method of ["session/cancel_tool_call", "_belay/tool_call/cancel"]) {
    await expect(one.request(method, { toolCallId })).rejects.toThrow("This call cannot be stopped by itself.");
  }
  await one.request("session/cancel");
  expect(await answer).toMatchObject({ stopReason: "cancelled" });
});
