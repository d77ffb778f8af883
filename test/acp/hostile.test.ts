// Messages that no client should send: they are answered with an error or not at all, have no effect, and leave the
// connection usable.
import { tmpdir } from "node:os";
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from "vitest";
import { acpAgent } from "../../src/protocols/acp/agent/acp-agent.ts";
import { type Belay, openBelay } from "../../src/sdk/belay.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { MESSAGE_BYTES_MAX } from "./byte-line.ts";
import { invalidMessages } from "./message-schema.ts";
import { greeting, notification, RawClient } from "./raw-client.ts";
import { type Fields, fieldsOf, type Message, type Version } from "./transcript.ts";

let belay: Belay;
beforeAll(async () => {
  belay = await openBelay({ agent: (turn) => turn.prompt.text, store: ":memory:", directories: "any" });
});
afterAll(() => belay.close({ mode: "cancel", limitMs: 1_000 }));

const acp = () => acpAgent({ control: belay, clock: systemClock, version: "0" });

async function opened(version: Version): Promise<{ readonly client: RawClient; readonly session: string }> {
  const client = await RawClient.open(acp(), version);
  onTestFailed(() => console.error(client.transcript.shown));
  return { client, session: await client.newSession(tmpdir()) };
}

/** Checks that a prompt still works. */
async function works(client: RawClient, session: string): Promise<void> {
  const prompt = client.prompt(session, "still here");
  await client.send(prompt);
  expect((await client.answer(prompt.id)).error).toBeUndefined();
}

/** The state of Belay. */
async function traces(): Promise<unknown> {
  const sessions = await belay.sessions({ limit: 500 });
  return Promise.all(sessions.map(async ({ id, head }) => [id, head, (await belay.session(id).runs()).length]));
}

/** The texts it received, in order, once it is done. */
async function told(client: RawClient, bytes: Uint8Array | string): Promise<readonly Message[]> {
  const count = client.transcript.said.length;
  await client.write(bytes);
  await client.ask("session/list", {});
  return client.after(count).slice(0, -1);
}

const line = (message: unknown): string => `${JSON.stringify(message)}\n`;

describe.each([1, 2] as const)("version %d of the protocol", (version) => {
  test.each<readonly [string, Uint8Array | string, readonly number[]]>([
    ["no JSON at all", "hello\n", [-32700]],
    ["half of a message", '{"jsonrpc":"2.0","id":1,\n', [-32700]],
    ["several of them", "{\n}\n[\n", [-32700, -32700, -32700]],
    ["an empty line", "\n\r\n  \n", []],
    ["a list of messages", line([{ jsonrpc: "2.0", id: 900, method: "session/list", params: {} }]), [-32600]],
    ["an empty list", "[]\n", [-32600]],
    ["a number", "42\n", [-32600]],
    ["a text", '"hello"\n', [-32600]],
    ["null", "null\n", [-32600]],
    ["an object that is no message", line({ hello: "there" }), [-32600]],
    ["another version of JSON-RPC", line({ jsonrpc: "1.0", id: 900, method: "session/list" }), [-32600]],
    ["a method that is none", line({ jsonrpc: "2.0", id: 900, method: 7 }), [-32600]],
    ["bytes that are no UTF-8", Uint8Array.from([0xff, 0xfe, 0x80, 0x0a]), [-32700]],
    ["zeros", Uint8Array.from([0, 0, 0, 0x0a]), [-32700]],
    ["an answer without a request", line({ jsonrpc: "2.0", id: 900, result: {} }), []],
    ["an error without a request", line({ jsonrpc: "2.0", id: 900, error: { code: 1, message: "" } }), []],
    ["an unknown notification", line(notification("session/unheard_of", {})), []],
    ["a cancel without its parameters", line(notification("session/cancel", {})), []],
    ["a request taken back that was never made", line(notification("$/cancel_request", { requestId: 900 })), []],
    ["a request taken back without its id", line(notification("$/cancel_request", {})), []],
  ])("%s", async (_, bytes, codes) => {
    const { client, session } = await opened(version);
    const before = await traces();
    const answers = await told(client, bytes);
    expect(answers.map(({ error }) => error?.code)).toEqual(codes);
    expect(await traces()).toEqual(before);
    expect(invalidMessages(client.transcript.said, version)).toEqual([]);
    await works(client, session);
    await client.drop();
  });

  const SESSION = { cwd: tmpdir(), mcpServers: [] };
  const TEXT = [{ type: "text", text: "x" }];

  test.each<readonly [string, string, Fields | readonly unknown[] | string | null, number]>([
    ["no parameters", "session/new", {}, -32602],
    ["parameters that are a list", "session/new", [], -32602],
    ["parameters that are a text", "session/new", "here", -32602],
    ["a directory that is a number", "session/new", { ...SESSION, cwd: 7 }, -32602],
    ["a directory that is half a path", "session/new", { ...SESSION, cwd: "here" }, -32602],
    ["a directory that is not there", "session/new", { ...SESSION, cwd: "/nowhere/at/all" }, -32602],
    ["a directory with a zero in it", "session/new", { ...SESSION, cwd: "/tmp\u0000" }, -32602],
    ["a session that is a number", "session/prompt", { sessionId: 7, prompt: TEXT }, -32602],
    ["a session of another shape", "session/prompt", { sessionId: "../../etc", prompt: TEXT }, -32002],
    ["a session that is a prototype", "session/prompt", { sessionId: "__proto__", prompt: TEXT }, -32002],
    ["a prompt that is a text", "session/prompt", { sessionId: "ses_x", prompt: "x" }, -32602],
    ["a call without a name", "session/cancel_tool_call", { sessionId: "ses_x" }, -32602],
    ["a run without a name", "_belay/run/cancel", {}, -32602],
    ["a steer of nothing", "_session/steering", { sessionId: "ses_x", prompt: [{ type: "text" }] }, -32602],
    ["a cursor that is none", "session/list", { cursor: "not one of ours" }, -32602],
    ["a method that is not there", "session/unheard_of", {}, -32601],
    ["a foreign extension method", "_other/thing", {}, -32601],
    ["a method that is a prototype", "constructor", {}, -32601],
    ["closing what is not open", "session/close", { sessionId: "ses_x" }, -32002],
    ["deleting what is not there", "session/delete", { sessionId: "ses_x" }, -32002],
  ])("%s: %s", async (_, method, params, code) => {
    const { client, session } = await opened(version);
    const before = await traces();
    // The types would not allow these parameters.
    const { error } = await client.ask(method, params as Fields);
    expect(error?.code).toBe(code);
    expect(JSON.stringify(error)).not.toMatch(/\bat .*\.(ts|js):\d/);
    expect(await traces()).toEqual(before);
    await works(client, session);
    await client.drop();
  });

  test("a message that is too long ends the connection, and stops nothing", async () => {
    const { client, session } = await opened(version);
    const { client: other, session: another } = await opened(version);
    const huge = JSON.stringify(client.prompt(session, "x".repeat(MESSAGE_BYTES_MAX)));
    await client.write(huge);
    await client.closed;
    expect(await belay.session(session).runs()).toEqual([]);
    await works(other, another);
    await other.drop();
  });

  test("a long prompt in many chunks is one prompt", async () => {
    const { client, session } = await opened(version);
    const prompt = client.prompt(session, "ü".repeat(100_000));
    const bytes = new TextEncoder().encode(line(prompt));
    client.transcript.add("client", prompt);
    for (let at = 0; at < bytes.length; at += 7_001) await client.write(bytes.slice(at, at + 7_001));
    expect((await client.answer(prompt.id)).error).toBeUndefined();
    await client.drop();
  });

  test("two requests with the same id are both answered, and neither prompt is lost", {
    meta: { id: "acp/duplicate-request-id" },
  }, async () => {
    const { client, session } = await opened(version);
    const one = client.prompt(session, "one");
    const other = { ...client.prompt(session, "two"), ...(one.id === undefined ? {} : { id: one.id }) };
    await client.send(one, other);
    await client.transcript.when((said) =>
      said.filter(({ by, message }) => by === "agent" && message.method === undefined && message.id === one.id)
        .length === 2
        ? true
        : undefined,
    );
    await works(client, session);
    expect(await belay.session(session).runs()).toHaveLength(3);
    await client.drop();
  });

  test("a second initialize does not change the client", async () => {
    const { client, session } = await opened(version);
    await client.ask("initialize", greeting(version));
    await client.ask("initialize", greeting(version === 1 ? 2 : 1));
    await works(client, session);
    await client.drop();
  });

  test("requests before initialize are refused, and initialize still works", async () => {
    const before = await traces();
    const client = RawClient.connect(acp(), version);
    await client.send(notification("session/cancel", { sessionId: "ses_x" }));
    expect((await client.ask("session/new", SESSION)).error?.code).toBe(-32600);
    expect((await client.ask("session/list", {})).error?.code).toBe(-32600);
    expect(await traces()).toEqual(before);
    expect((await client.ask("initialize", greeting(version))).result).toMatchObject({ protocolVersion: version });
    await works(client, await client.newSession(tmpdir()));
    await client.drop();
  });
});

test.each([0, -1, 1.5, 65_536, "1", null, undefined])(
  "version %s is refused, and nothing is opened",
  async (protocolVersion) => {
    const client = RawClient.connect(acp(), 1);
    const { error } = await client.ask("initialize", { protocolVersion });
    expect(error?.code).toBeLessThan(0);
    expect((await client.ask("session/new", { cwd: tmpdir(), mcpServers: [] })).error?.code).toBe(-32600);
    await client.drop();
  },
);

test("the alias answers not_found for a call of an unknown session", async () => {
  const { client } = await opened(1);
  const { result } = await client.ask("session/cancel_tool_call", { sessionId: "ses_x", toolCallId: "c" });
  expect(result).toMatchObject({ status: "not_found", callId: "c" });
  await client.drop();
});

describe("messages after a refused one", () => {
  test("a prompt after a load in the wrong directory is answered", async () => {
    const { client, session } = await opened(1);
    await client.ask("session/close", { sessionId: session });
    const load = client.request("session/load", { sessionId: session, cwd: "/", mcpServers: [] });
    const prompt = client.prompt(session, "x");
    await client.send(load, prompt);
    expect((await client.answer(load.id)).error?.code).toBe(-32602);
    await client.answer(prompt.id);
    await client.drop();
  });

  test("a prompt after a close finds the session closed, one after the next load finds it open", async () => {
    const { client, session } = await opened(1);
    const close = client.request("session/close", { sessionId: session });
    const behind = client.prompt(session, "x");
    const load = client.request("session/load", { sessionId: session, cwd: tmpdir(), mcpServers: [] });
    const again = client.prompt(session, "y");
    await client.send(close, behind, load, again);
    expect((await client.answer(close.id)).error).toBeUndefined();
    expect((await client.answer(behind.id)).error?.code).toBe(-32002);
    expect((await client.answer(load.id)).error).toBeUndefined();
    expect((await client.answer(again.id)).result).toMatchObject({ stopReason: "end_turn" });
    await client.drop();
  });

  test("two concurrent loads report the history twice, one after the other, and are both answered", async () => {
    const { client, session } = await opened(1);
    await works(client, session);
    const load = () => client.request("session/load", { sessionId: session, cwd: tmpdir(), mcpServers: [] });
    const [one, other] = [load(), load()];
    const count = client.transcript.said.length;
    await client.send(one, other);
    await Promise.all([client.answer(one.id), client.answer(other.id)]);
    const kinds = client.after(count).map(({ id, params }) => id ?? fieldsOf(params?.update).sessionUpdate);
    const history = ["user_message_chunk", "agent_message_chunk"];
    expect(kinds).toEqual([...history, one.id, ...history, other.id]);
    await client.drop();
  });
});
