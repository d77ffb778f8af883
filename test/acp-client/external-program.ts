// An external agent as a real program that speaks ACP on its pipes. Its arguments define its capabilities, and the
// prompt its actions: one word, and optionally a second one.
import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { type AgentContext, agent, ndJsonStream, RequestError } from "@agentclientprotocol/sdk";

export interface Skills {
  /** Where it stores its sessions. Without it, it cannot restore one. */
  readonly memory?: string;
  readonly restores?: "load" | "resume";
  readonly steers?: boolean | "refuses";
  /** The MCP server kinds it supports besides stdio. */
  readonly takes?: "everything";
  readonly cancelsCalls?: boolean;
  /** Has modes, models and options. */
  readonly menus?: boolean;
  /** An action before, or instead of, everything else. */
  readonly first?: "garbage" | "silence" | "exit" | "huge" | "version" | "login";
}

const skills: Skills = JSON.parse(process.argv[2] ?? "{}");

interface Session {
  readonly said: string[];
  cancel: PromiseWithResolvers<void>;
  steer: PromiseWithResolvers<string>;
}

const sessions = new Map<string, Session>();
let brought: object = {};
const settings: object[] = [];
const stoppedCalls = new Map<string, PromiseWithResolvers<void>>();

const fileOf = (id: string): string => join(skills.memory ?? "", `${id}.json`);

function begin(id: string, said: string[]): Session {
  const session = { said, cancel: Promise.withResolvers<void>(), steer: Promise.withResolvers<string>() };
  sessions.set(id, session);
  return session;
}

function takenUp(id: string): Session {
  if (!existsSync(fileOf(id))) throw RequestError.resourceNotFound(id);
  return begin(id, JSON.parse(readFileSync(fileOf(id), "utf8")));
}

type Client = Pick<AgentContext, "notify" | "request">;

class Work {
  readonly id: string;
  readonly session: Session;
  readonly client: Client;
  readonly signal: AbortSignal;

  constructor(id: string, session: Session, client: Client, signal: AbortSignal) {
    this.id = id;
    this.session = session;
    this.client = client;
    this.signal = signal;
  }

  update(update: object): Promise<void> {
    return this.client.notify("session/update", { sessionId: this.id, update });
  }

  say(text: string, kind: "message" | "thought" = "message"): Promise<void> {
    return this.update({ sessionUpdate: `agent_${kind}_chunk`, content: { type: "text", text } });
  }

  call(toolCallId: string, fields: object): Promise<void> {
    return this.update({ sessionUpdate: "tool_call_update", toolCallId, ...fields });
  }
}

type Deed = (work: Work, rest: string) => Promise<string | undefined>;

const permissionOptions = [
  { optionId: "yes", name: "Allow", kind: "allow_once" },
  { optionId: "always", name: "Always allow", kind: "allow_always" },
  { optionId: "no", name: "Reject", kind: "reject_once" },
];

/** The answer to a permission request. */
async function leave(work: Work, toolCall: object): Promise<string> {
  const params = { sessionId: work.id, toolCall, options: permissionOptions };
  const { outcome } = await work.client.request<{ outcome: { outcome: string; optionId?: string } }>(
    "session/request_permission",
    params,
  );
  return outcome.optionId ?? outcome.outcome;
}

/**
 * Commands in every form that escapes a careless stop. Each of their processes sleeps with the mark in its command
 * line.
 */
export const SHAPES: Readonly<Record<string, (mark: string) => string>> = {
  plain: (mark) => `sleep ${mark} & sleep ${mark} & wait`,
  setsid: (mark) => `setsid sleep ${mark} & exec sleep ${mark}`,
  "double fork": (mark) => `(setsid sleep ${mark} &); exec sleep ${mark}`,
  "deaf to SIGTERM": (mark) => `trap "" TERM INT HUP; sleep ${mark} & sleep ${mark}`,
  "env -i": (mark) => `(setsid env -i sleep ${mark} &); exec env -i sleep ${mark}`,
};

function startCommand(shape: string, mark: string): void {
  spawn("sh", ["-c", SHAPES[shape]?.(mark) ?? ""], { stdio: "ignore", detached: true }).unref();
}

const DEEDS: Readonly<Record<string, Deed>> = {
  /** Answers a cancel, but leaves its command running. */
  async leak(work, rest) {
    const [mark = "", ...shape] = rest.split(" ");
    const call = { toolCallId: `l${mark}`, title: "Run it", kind: "execute", rawInput: { command: "it" } };
    await work.update({ sessionUpdate: "tool_call", status: "in_progress", ...call });
    startCommand(shape.join(" "), mark);
    await work.say("up");
    await work.session.cancel.promise;
    return "cancelled";
  },
  /** Leaves its command running, and ends its turn. */
  async leave(work, rest) {
    const [mark = "", ...shape] = rest.split(" ");
    startCommand(shape.join(" "), mark);
    await work.say("left");
    return undefined;
  },
  /** Like `leak`, and afterwards it does not answer, because it has lost a server that it needs. */
  async broken(work, rest) {
    startCommand("plain", rest);
    await work.say("up");
    await work.session.cancel.promise;
    setImmediate(() => {
      for (;;);
    });
    return "cancelled";
  },
  /** Announces a call and never updates its status, although its command runs. */
  async announce(work, mark) {
    const status = mark.startsWith("9") ? { status: "pending" } : {};
    const call = { toolCallId: "a1", title: "Run it", kind: "execute", rawInput: { command: "it" } };
    await work.update({ sessionUpdate: "tool_call", ...call, ...status });
    startCommand("plain", mark);
    await work.session.cancel.promise;
    return "cancelled";
  },
  /** Runs a command that can be ended alone, and continues. */
  async command(work, mark) {
    const call = { toolCallId: "k1", title: "Run it", kind: "execute", rawInput: { command: "it" } };
    await work.update({ sessionUpdate: "tool_call", status: "in_progress", ...call });
    const child = spawn("sh", ["-c", SHAPES["deaf to SIGTERM"]?.(mark) ?? ""], { stdio: "ignore", detached: true });
    await new Promise((resolve) => child.once("exit", resolve));
    await work.call("k1", { status: "failed", content: [] });
    await work.say("went on without it");
    return undefined;
  },
  /** Runs two commands at once, whose processes cannot be told apart. */
  async commands(work, mark) {
    for (const toolCallId of ["m1", "m2"]) {
      const call = { toolCallId, title: toolCallId, kind: "execute", rawInput: { command: "it" } };
      await work.update({ sessionUpdate: "tool_call", status: "in_progress", ...call });
      startCommand("plain", mark);
    }
    await work.say("up");
    await work.session.cancel.promise;
    return "cancelled";
  },
  /** Sends every kind of update that Belay does not record. */
  async extras(work) {
    const entries = [{ content: "Look", priority: "high", status: "pending" }];
    await work.update({ sessionUpdate: "plan", entries });
    const availableCommands = [{ name: "compact", description: "Compacts" }];
    await work.update({ sessionUpdate: "available_commands_update", availableCommands });
    await work.update({ sessionUpdate: "usage_update", used: 10, size: 100 });
    await work.update({ sessionUpdate: "session_info_update", title: "A title" });
    await work.update({ sessionUpdate: "something_newer", fields: { of: "tomorrow" } });
    const locations = [{ path: "/tmp/x", line: 7 }];
    const call = { toolCallId: "e1", title: "Edit x", kind: "edit", status: "pending", locations, rawInput: { a: 1 } };
    await work.update({ sessionUpdate: "tool_call", ...call });
    const out = { type: "content", content: { type: "text", text: "line 1" } };
    await work.call("e1", { status: "in_progress", content: [out] });
    const image = { type: "content", content: { type: "image", data: "AAAA", mimeType: "image/png" } };
    const diff = { type: "diff", path: "/tmp/x", oldText: "old", newText: "new" };
    await work.call("e1", { status: "completed", content: [out, diff, image] });
    await work.say("done");
    return undefined;
  },
  /** Reports its settings. */
  async settings(work) {
    await work.say(JSON.stringify(settings));
    return undefined;
  },
  /** Sends text and calls alternately, without a pause. */
  async order(work) {
    for (let index = 1; index <= 10; index += 1) {
      const status = index % 2 === 0 ? "in_progress" : "pending";
      await work.update({ sessionUpdate: "tool_call", toolCallId: `s${index}`, title: `call ${index}`, status });
      await work.say(`text ${index}. `);
      await work.call(`s${index}`, { status: "completed" });
    }
    await work.say("end");
    return undefined;
  },
  /** Answers a cancel only when it has received SIGTERM: at the end of its grace period. */
  async edge(work) {
    await work.say("waiting");
    await new Promise((resolve) => process.once("SIGTERM", resolve));
    return "cancelled";
  },
  async echo(work, rest) {
    await work.say("thinking of it", "thought");
    await work.say(`${rest} `);
    await work.say("indeed");
    return undefined;
  },
  async recall(work) {
    await work.say(`I remember: ${work.session.said.slice(0, -1).join(" | ")}`);
    return undefined;
  },
  async where(work) {
    await work.say(
      JSON.stringify({ cwd: process.cwd(), key: process.env.SOME_API_KEY, token: process.env.BELAY_TOKEN }),
    );
    return undefined;
  },
  async luggage(work) {
    await work.say(JSON.stringify(brought));
    return undefined;
  },
  async withdraw(work, file) {
    const back = new AbortController();
    const toolCall = { toolCallId: "p3", title: "Perhaps" };
    const params = { sessionId: work.id, toolCall, options: permissionOptions };
    const answer = work.client.request<{ outcome: { outcome: string } }>("session/request_permission", params, {
      cancellationSignal: back.signal,
    });
    while (!existsSync(file)) await new Promise((resolve) => setImmediate(resolve));
    back.abort();
    await work.say(`answer: ${(await answer).outcome.outcome}`);
    return undefined;
  },
  async tools(work) {
    const rawInput = { command: "ls" };
    await work.update({ sessionUpdate: "tool_call", toolCallId: "t1", title: "List files", kind: "execute", rawInput });
    await work.call("t1", { status: "in_progress" });
    await work.call("t1", {
      status: "completed",
      content: [{ type: "content", content: { type: "text", text: "a\nb" } }],
    });
    const diff = { type: "diff", path: "/tmp/x", oldText: "old", newText: "new" };
    await work.update({
      sessionUpdate: "tool_call",
      toolCallId: "t2",
      title: "Edit x",
      kind: "edit",
      status: "in_progress",
    });
    await work.call("t2", { status: "completed", content: [diff] });
    await work.call("t3", { status: "failed", title: "Break", content: [] });
    await work.update({ sessionUpdate: "something_newer", fields: { of: "tomorrow" } });
    await work.say("done");
    return undefined;
  },
  async ask(work) {
    const rawInput = { command: "rm x" };
    await work.update({ sessionUpdate: "tool_call", toolCallId: "p1", title: "Remove x", status: "pending", rawInput });
    const answer = await leave(work, { toolCallId: "p1", title: "Remove x", rawInput });
    await work.call("p1", { status: answer === "yes" ? "completed" : "failed" });
    await work.say(`answer: ${answer}`);
    return undefined;
  },
  async twice(work) {
    // A permission request to begin and, once granted, a second one.
    await leave(work, { toolCallId: "p2", title: "Deploy" });
    await work.call("p2", { status: "in_progress" });
    const answer = await leave(work, { toolCallId: "p2", title: "Deploy" });
    await work.call("p2", { status: "completed" });
    await work.say(`answer: ${answer}`);
    return undefined;
  },
  async wait(work) {
    await work.update({ sessionUpdate: "tool_call", toolCallId: "w1", title: "Long work", status: "in_progress" });
    await work.say("waiting");
    await work.session.cancel.promise;
    await work.call("w1", { status: "failed" });
    return "cancelled";
  },
  async deaf(work, mark) {
    // The worst process tree, and an agent that ignores `session/cancel` and `$/cancel_request`.
    const daemon = `setsid sh -c 'trap "" TERM; exec sleep ${mark}'`;
    const script = `${daemon} & trap "" TERM; sleep ${mark} & wait; sleep ${mark}`;
    spawn("sh", ["-c", script], { stdio: "ignore", detached: true });
    process.on("SIGTERM", () => {});
    await work.update({ sessionUpdate: "tool_call", toolCallId: "d1", title: "Long work", status: "in_progress" });
    await work.say("up");
    await new Promise(() => {});
    return undefined;
  },
  async again(work) {
    await work.say("waiting");
    await new Promise<void>((resolve) => work.signal.addEventListener("abort", () => resolve(), { once: true }));
    return "cancelled";
  },
  async crash(work) {
    await work.update({ sessionUpdate: "tool_call", toolCallId: "c1", title: "Risky", status: "in_progress" });
    await work.say("so far so good");
    process.stderr.write("something is very wrong\n");
    process.exit(7);
  },
  async error() {
    throw new RequestError(-32_603, "The model is tired.");
  },
  async quit(work) {
    await work.say("I stop");
    return "cancelled";
  },
  async length() {
    return "max_tokens";
  },
  async steered(work) {
    await work.say("listening ");
    await work.say(`heard: ${await work.session.steer.promise}`);
    return undefined;
  },
  async one(work) {
    const stop = Promise.withResolvers<void>();
    stoppedCalls.set("o1", stop);
    await work.update({ sessionUpdate: "tool_call", toolCallId: "o1", title: "One of many", status: "in_progress" });
    await stop.promise;
    await work.call("o1", { status: "failed", content: [] });
    await work.say("went on without it");
    return undefined;
  },
  async finish(work, file) {
    await work.say("waiting for a file ");
    while (!existsSync(file)) await new Promise((resolve) => setImmediate(resolve));
    await work.say("there it is");
    return undefined;
  },
};

const textOf = (blocks: readonly { type: string; text?: string }[]): string =>
  blocks.flatMap((block) => (block.type === "text" ? [block.text ?? ""] : [`<${block.type}>`])).join("\n");

const MODES = [
  { id: "plan", name: "Plan" },
  { id: "build", name: "Build" },
];

const OPTION = { id: "effort", name: "Effort", type: "select", currentValue: "low", options: [] as object[] } as const;

const MENUS = {
  modes: { currentModeId: "build", availableModes: MODES },
  models: { currentModelId: "small", availableModels: [{ modelId: "small", name: "Small" }] },
  configOptions: [{ ...OPTION, options: [{ value: "low", name: "Low" }] }],
};

const app = agent({ name: "foreign" })
  .onRequest("session/set_mode", ({ params }) => {
    settings.push({ mode: params.modeId });
    return {};
  })
  .onRequest("session/set_config_option", ({ params }) => {
    settings.push({ [params.configId]: params.value });
    return { configOptions: MENUS.configOptions as never };
  })
  .onRequest(
    "session/set_model",
    (params) => params as { modelId: string },
    ({ params }) => {
      settings.push({ model: params.modelId });
      return {};
    },
  )
  .onRequest("initialize", () => {
    if (skills.first === "silence") return new Promise(() => {});
    return {
      protocolVersion: skills.first === "version" ? 7 : 1,
      agentCapabilities: {
        loadSession: skills.restores === "load",
        sessionCapabilities: {
          ...(skills.restores === "resume" ? { resume: {} } : {}),
          ...(skills.takes === undefined ? {} : { additionalDirectories: {} }),
        },
        ...(skills.takes === undefined ? {} : { mcpCapabilities: { http: true } }),
        ...(skills.cancelsCalls === true ? { _meta: { belay: { methods: ["_belay/tool_call/cancel"] } } } : {}),
      },
      authMethods: [{ id: "key", name: "With a key" }],
      _meta: { steering: { supported: skills.steers !== undefined } },
    };
  })
  .onRequest("session/new", ({ params }) => {
    brought = { servers: params.mcpServers.map(({ name }) => name), further: params.additionalDirectories ?? [] };
    if (skills.first === "login") throw new RequestError(-32_000, "Authentication required");
    const sessionId = `own-${process.pid}-${sessions.size}`;
    begin(sessionId, []);
    return { sessionId, ...(skills.menus === true ? MENUS : {}) };
  })
  .onRequest("session/load", async ({ params, client }) => {
    const { said } = takenUp(params.sessionId);
    const chunk = { sessionUpdate: "agent_message_chunk", content: { type: "text", text: `replayed ${said.length}` } };
    await client.notify("session/update", { sessionId: params.sessionId, update: chunk as never });
    return {};
  })
  .onRequest("session/resume", ({ params }) => {
    takenUp(params.sessionId);
    return {};
  })
  .onRequest("session/prompt", async ({ params, client, signal }) => {
    const session = sessions.get(params.sessionId);
    if (session === undefined) throw RequestError.resourceNotFound(params.sessionId);
    session.cancel = Promise.withResolvers();
    const text = textOf(params.prompt as never);
    session.said.push(text);
    if (skills.memory !== undefined) writeFileSync(fileOf(params.sessionId), JSON.stringify(session.said));
    // The last line is the request; the lines before it are history.
    const [word = "", ...rest] = (text.split("\n").at(-1) ?? "").split(" ");
    const work = new Work(params.sessionId, session, client, signal);
    const reason = await (DEEDS[word] ?? DEEDS.echo)?.(work, rest.join(" "));
    return { stopReason: (reason ?? "end_turn") as "end_turn" };
  })
  .onNotification("session/cancel", ({ params }) => sessions.get(params.sessionId)?.cancel.resolve())
  .onRequest(
    "_session/steering",
    (params) => params as { sessionId: string; prompt: { type: string; text?: string }[] },
    ({ params }) => {
      sessions.get(params.sessionId)?.steer.resolve(textOf(params.prompt));
      return { outcome: skills.steers === "refuses" ? "failed" : "injected" };
    },
  )
  .onRequest(
    "_belay/tool_call/cancel",
    (params) => params as { toolCallId: string },
    ({ params }) => {
      stoppedCalls.get(params.toolCallId)?.resolve();
      return {};
    },
  );

if (skills.first === "exit") {
  process.stderr.write("no key is set\n");
  process.exit(3);
}
if (skills.first === "garbage") process.stdout.write("Welcome to Foreign 1.0!\n[1,2]\n{}\n");
if (skills.first === "huge") process.stdout.write("x".repeat(40 * 1024 * 1024));
// Exits when its input is closed.
process.stdin.on("end", () => process.exit(0));
app.connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin) as never));
