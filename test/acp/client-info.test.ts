// The client of a connection: its permissions, its audit records, its resources, and the questions it can be asked.
import { tmpdir } from "node:os";
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from "vitest";
import type { Agent } from "../../src/ports/agent.ts";
import { type AcpAgentOptions, acpAgent, type OpenedSession } from "../../src/protocols/acp/agent/acp-agent.ts";
import type { AcpClientInfo } from "../../src/protocols/acp/agent/acp-client-info.ts";
import type { AuditRecord } from "../../src/protocols/acp/agent/audit.ts";
import { type Belay, openBelay } from "../../src/sdk/belay.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { settled } from "../../src/testing/manual-clock.ts";
import { brokenLaws } from "./laws.ts";
import { invalidMessages } from "./message-schema.ts";
import { greeting, RawClient } from "./raw-client.ts";
import { type Fields, fieldsOf, type Message, updateOf, type Version } from "./transcript.ts";

const agent: Agent = async (turn) => {
  if (turn.prompt.text === "type") {
    const asked = await turn.ask({ text: "Which name?" });
    return `[${asked.kind === "answered" ? String(asked.value) : asked.kind}]`;
  }
  if (turn.prompt.text !== "approve") return "done";
  return `[${(await turn.call("write_file", { path: "a" }, () => "ok", { approval: true })).kind}]`;
};

let belay: Belay;
beforeAll(async () => {
  belay = await openBelay({ agent, store: ":memory:", directories: "any" });
});
afterAll(() => belay.close({ mode: "cancel", limitMs: 1_000 }));

interface Wish extends Partial<Omit<AcpAgentOptions, "version">> {
  readonly version?: Version;
  readonly capabilities?: Fields;
  /** The answer to every question; undefined: none. */
  readonly answers?: (message: Message) => Fields | undefined;
}

async function connected({ version = 1, capabilities = {}, answers, ...options }: Wish = {}): Promise<RawClient> {
  const acp = acpAgent({ control: belay, clock: systemClock, version: "0", ...options });
  const client: RawClient = RawClient.connect(acp, version, (message) => {
    if (message.method === undefined || message.id === undefined) return;
    const result = answers?.(message);
    if (result !== undefined) void client.send({ jsonrpc: "2.0", id: message.id, result });
  });
  onTestFailed(() => console.error(client.transcript.shown));
  const can = version === 1 ? { clientCapabilities: capabilities } : { capabilities };
  await client.ask("initialize", { ...greeting(version), ...can });
  return client;
}

async function left(client: RawClient): Promise<void> {
  await client.drop();
  const { said } = client.transcript;
  expect(brokenLaws(said, client.version, { end: "open" })).toEqual([]);
  expect(invalidMessages(said, client.version)).toEqual([]);
}

async function prompted(client: RawClient, session: string, text: string): Promise<Message> {
  const prompt = client.prompt(session, text);
  await client.send(prompt);
  return client.answer(prompt.id);
}

const clientWith = (...may: readonly ("read" | "prompt" | "cancel" | "approve")[]): AcpClientInfo => ({
  name: "ann",
  may: new Set(may),
});

describe("G35: a forbidden request is refused and has no effect", () => {
  test("a read-only client cannot create sessions, send prompts or stop anything", async () => {
    const { id } = await belay.createSession({ cwd: tmpdir() });
    const client = await connected({ client: clientWith("read") });
    const codes = [
      await client.ask("session/new", { cwd: tmpdir(), mcpServers: [] }),
      await client.ask("session/load", { sessionId: id, cwd: tmpdir(), mcpServers: [] }),
      await prompted(client, id, "hello"),
      await client.ask("session/close", { sessionId: id }),
      await client.ask("session/delete", { sessionId: id }),
      await client.ask("_belay/run/cancel", { runId: "run_x" }),
      await client.ask("_session/steering", { sessionId: id, prompt: [{ type: "text", text: "x" }] }),
    ].map(({ error }) => error?.code);
    expect(codes).toEqual([-32014, undefined, -32014, -32014, -32014, -32014, -32014]);
    expect(await belay.session(id).runs()).toEqual([]);
    expect((await belay.session(id).row()).phase).toBe("open");
    await left(client);
  });

  test("another tenant's run is reported like an unknown one, without its session", async () => {
    const run = belay.prompt("hello", { tenant: "other" });
    const { runId } = await run.accepted;
    await run.outcome;
    const client = await connected({ client: { ...clientWith("read", "cancel"), tenant: "bob" } });
    const others = await client.ask("_belay/run/cancel", { runId });
    expect(others.result).toEqual((await client.ask("_belay/run/cancel", { runId: "run_nowhere" })).result);
    expect(client.transcript.shown).not.toContain(run.sessionId);
    await left(client);
  });

  test("a client without read permission finds nothing", async () => {
    const { id } = await belay.createSession({ cwd: tmpdir() });
    const client = await connected({ client: clientWith("prompt") });
    expect((await client.ask("session/list", {})).error?.code).toBe(-32014);
    expect((await client.ask("session/load", { sessionId: id, cwd: tmpdir(), mcpServers: [] })).error?.code).toBe(
      -32014,
    );
    expect((await client.ask("_belay/session/explain", { sessionId: id })).error?.code).toBe(-32014);
    await left(client);
  });

  test("a client without approve permission is not asked", async () => {
    const client = await connected({ client: clientWith("read", "prompt", "cancel") });
    const session = await client.newSession(tmpdir());
    const prompt = client.prompt(session, "approve");
    await client.send(prompt);
    const [question] = await waiting(session);
    await belay.questions.allow(question ?? "", { by: "another user" });
    expect((await client.answer(prompt.id)).result).toMatchObject({ stopReason: "end_turn" });
    expect(client.transcript.said.some(({ message }) => message.method === "session/request_permission")).toBe(false);
    await left(client);
  });

  test("another tenant's sessions are not found by any method", async () => {
    const { id } = await belay.createSession({ tenant: "other", cwd: tmpdir() });
    const all = clientWith("read", "prompt", "cancel", "approve");
    const client = await connected({ client: { ...all, tenant: "acme" } });
    const mine = await client.newSession(tmpdir());
    expect(mine).toMatch(/^ses_acme\./);
    for (const method of [
      "session/load",
      "session/resume",
      "session/close",
      "session/delete",
      "_belay/session/explain",
    ]) {
      expect((await client.ask(method, { sessionId: id, cwd: tmpdir(), mcpServers: [] })).error?.code, method).toBe(
        -32002,
      );
    }
    expect((await prompted(client, id, "hello")).error?.code).toBe(-32002);
    const { result } = await client.ask("session/list", {});
    expect(result?.sessions).toMatchObject([{ sessionId: mine }]);
    await left(client);
  });
});

/** The questions of a session, once there are any. */
async function waiting(session: string): Promise<readonly string[]> {
  for await (const event of belay.session(session).events())
    if (event.type === "question.asked") return [event.questionId];
  return [];
}

test("every control request leaves an audit record, even a refused one; a failed write blocks nothing", async () => {
  const records: AuditRecord[] = [];
  const notices: string[] = [];
  const note = async (record: AuditRecord): Promise<void> => {
    records.push(record);
    if (record.action === "close") throw new Error("the disk is full");
  };
  const client = await connected({
    audit: { note },
    client: clientWith("read", "prompt", "cancel"),
    notice: (text) => void notices.push(text),
  });
  const session = await client.newSession(tmpdir());
  await prompted(client, session, "hello");
  await prompted(client, "ses_nowhere", "hello");
  await client.send({ jsonrpc: "2.0", method: "session/cancel", params: { sessionId: session } });
  await client.ask("_belay/run/cancel", { runId: "run_nowhere" });
  expect((await client.ask("session/close", { sessionId: session })).error).toBeUndefined();
  await settled();
  expect(records.map(({ action, answer, actor, via }) => [action, answer, actor, via])).toEqual([
    ["create", "done", "ann", "acp"],
    ["prompt", "accepted", "ann", "acp"],
    ["prompt", "refused", "ann", "acp"],
    ["cancel", expect.any(String), "ann", "acp"],
    ["cancel", "unknown", "ann", "acp"],
    ["close", expect.any(String), "ann", "acp"],
  ]);
  expect(new Set(records.map(({ id }) => id)).size).toBe(records.length);
  expect(notices.join()).toContain("the disk is full");
  await left(client);
});

describe("the resources of a client", () => {
  const mcpServers = [{ name: "files", command: "/bin/true", args: [], env: [{ name: "KEY", value: "secret" }] }];

  test("are reported before the session is answered", async () => {
    const opened: OpenedSession[] = [];
    const client = await connected({ onSession: (session) => void opened.push(session) });
    const { result } = await client.ask("session/new", { cwd: tmpdir(), mcpServers });
    expect(opened).toEqual([{ sessionId: result?.sessionId, cwd: tmpdir(), mcpServers, additionalDirectories: [] }]);
    await left(client);
  });

  test("are not dropped silently, and their secrets are not disclosed", async () => {
    const client = await connected();
    await client.ask("session/new", { cwd: tmpdir(), mcpServers });
    const notices = client.transcript.said.flatMap((one) => updateOf(one)?.update ?? []);
    expect(notices).toMatchObject([{ sessionUpdate: "notice", title: "1 MCP servers are ignored" }]);
    expect(JSON.stringify(notices)).not.toContain("secret");
    await left(client);
  });
});

describe.each([1, 2] as const)("a typed answer, version %d", (version) => {
  test("is requested with a form, if the client has forms", async () => {
    const answers = ({ method }: Message): Fields | undefined =>
      method === "elicitation/create" ? { action: "accept", content: { answer: "Ada" } } : undefined;
    const client = await connected({ version, capabilities: { elicitation: { form: {} } }, answers });
    const session = await client.newSession(tmpdir());
    await prompted(client, session, "type");
    await client.transcript.when((said) => said.find(({ message }) => JSON.stringify(message).includes("[Ada]")));
    await left(client);
  });

  test("is requested elsewhere, if it has none: a notice says how", async () => {
    const client = await connected({ version });
    const session = await client.newSession(tmpdir());
    const prompt = client.prompt(session, "type");
    await client.send(prompt);
    const notice = await client.transcript.when((said) =>
      said.flatMap((one) => updateOf(one)?.update ?? []).find((one) => one.sessionUpdate === "notice"),
    );
    const [, id = ""] = /belay answer (ask_\S+)/.exec(String(notice.description)) ?? [];
    expect(await belay.questions.answer(id, "Bob")).toMatchObject({ kind: "recorded" });
    await client.transcript.when((said) => said.find(({ message }) => JSON.stringify(message).includes("[Bob]")));
    expect(fieldsOf((await client.answer(prompt.id)).error)).toEqual({});
    await left(client);
  });

  test("is withdrawn when the form is closed", async () => {
    const answers = ({ method }: Message): Fields | undefined =>
      method === "elicitation/create" ? { action: "cancel" } : undefined;
    const client = await connected({ version, capabilities: { elicitation: { form: {} } }, answers });
    const session = await client.newSession(tmpdir());
    await prompted(client, session, "type");
    await client.transcript.when((said) => said.find(({ message }) => JSON.stringify(message).includes("[withdrawn]")));
    await left(client);
  });
});
