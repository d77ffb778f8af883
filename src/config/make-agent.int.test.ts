import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { commandOf } from "../../test/acp-client/external-agent-fixture.ts";
import { startProvider } from "../../test/fixtures/provider/server.ts";
import type { HookedCall } from "../ports/hooks.ts";
import { openBelay } from "../sdk/belay.ts";
import type { BelayOptions } from "../sdk/belay-options.ts";
import { openOptions, type SettledConfig } from "./config.ts";
import { type AgentParts, defaultPrompt, makeAgent } from "./make-agent.ts";

let folder = "";
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "belay-agent-")));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const config = (given: Partial<SettledConfig> = {}): SettledConfig => ({ workspace: folder, mode: "ask", ...given });

const parts = (given: Partial<AgentParts> = {}): AgentParts => ({
  ...{
    env: {},
    taken: { keys: new Map([["OPENAI_API_KEY", "key-o"]]), secrets: [], files: [] },
    demoFolder: join(folder, "demo"),
  },
  ...given,
});

function put(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

/** The names of the tools in a request to the model. */
function toolNames(body: unknown): readonly string[] {
  const tools: unknown = Reflect.get(Object(body), "tools");
  return Array.isArray(tools) ? tools.map((one) => String(one.function.name)).toSorted() : [];
}

async function answered(agent: BelayOptions["agent"], prompt: string) {
  await using belay = await openBelay({ agent, store: ":memory:" });
  return await belay.prompt(prompt).outcome;
}

describe("the agent of a configuration", () => {
  test("is the demo agent if nothing is configured, with a notice", async () => {
    const made = await makeAgent(config(), parts());
    expect(made.describe).toBe("demo agent");
    expect(made.notice).toContain("a script, not a model");
    expect(made.notice).not.toContain("not used");
    expect((await makeAgent(config({ tools: "/t.js" }), parts())).notice).toContain("these are not used: tools.");
    expect(await answered(made.agent, "hello")).toMatchObject({ kind: "completed" });
  });

  test("has the hooks of its module, or those of the module that the configuration names, and not both", async () => {
    const agent = put("agent.mjs", 'export const agent = () => "hi"; export const hooks = { onOutcome() {} };');
    const own = (await makeAgent(config({ agent }), parts())).hooks;
    expect(Object.keys(own ?? {})).toEqual(["onOutcome"]);
    const hooks = put("hooks.mjs", "export const hooks = { beforeCall() {} };");
    const named = (await makeAgent(config({ hooks }), parts())).hooks;
    expect(Object.keys(named ?? {})).toEqual(["beforeCall"]);
    await expect(makeAgent(config({ agent, hooks }), parts())).rejects.toMatchObject({
      message: expect.stringContaining("Both"),
    });
    const wrong = put("wrong.mjs", "export const hooks = 7;");
    await expect(makeAgent(config({ hooks: wrong }), parts())).rejects.toMatchObject({
      code: "invalid",
      message: `The hooks that ${wrong} exports are not an object of functions.`,
    });
  });

  test("over a model gets the default prompt, the instructions, the tools of its mode and the user's", async () => {
    put("tools.mjs", TOOLS);
    const instructions = { file: put("i.md", "Speak like a sailor.") };
    await using server = await startProvider([[{ text: "ok" }]]);
    const env = { OPENAI_BASE_URL: server.baseURL };
    const given = config({ model: "openai/gpt-x", tools: join(folder, "tools.mjs"), instructions });
    const made = await makeAgent(given, parts({ env }));
    expect([made.describe, made.notice]).toEqual(["openai/gpt-x", undefined]);
    expect(await answered(made.agent, "go")).toMatchObject({ kind: "completed" });
    const body = server.requests[0]?.body;
    expect(toolNames(body)).toEqual([
      ...["edit_file", "list_files", "own_tool", "read_file", "read_output", "search_files", "shell", "start_process"],
      ...["stop_process", "wait_process", "write_file"],
    ]);
    const request = JSON.stringify(body);
    expect(request).toContain("A stop is final");
    expect(request).toContain("Speak like a sailor.");
    expect(server.violations).toEqual([]);
  });

  test("in the mode read-only has no tool that could change anything, and none of the user's tools", async () => {
    const tools = put("tools.mjs", TOOLS);
    await using server = await startProvider([[{ text: "ok" }]]);
    const given = config({ model: "openai/gpt-x", mode: "read-only", tools });
    const made = await makeAgent(given, parts({ env: { OPENAI_BASE_URL: server.baseURL } }));
    expect(made.notice).toContain("leaves out the tools");
    await answered(made.agent, "go");
    expect(toolNames(server.requests[0]?.body)).toEqual(["list_files", "read_file", "search_files"]);
  });

  test("G39: `modes` is a ceiling: no session can be set to another mode, nor keep one after a restart", async () => {
    await using server = await startProvider([[{ text: "ok" }], [{ text: "ok" }]]);
    const at = parts({ env: { OPENAI_BASE_URL: server.baseURL } });
    const store = join(folder, "ceiling.db");
    const free = await makeAgent(config({ model: "openai/gpt-x" }), at);
    const before = await openBelay({ agent: free.agent, store, processes: { workspace: folder } });
    const { id } = await before.createSession();
    await before.session(id).setMode("auto");
    await before.close();
    const capped = await makeAgent(config({ model: "openai/gpt-x", mode: "read-only", modes: ["read-only"] }), at);
    await using belay = await openBelay({ agent: capped.agent, store, processes: { workspace: folder } });
    const session = belay.session(id);
    expect(await belay.status()).toMatchObject({ mode: "read-only", modes: [{ id: "read-only" }] });
    expect(await session.explain()).toMatchObject({ mode: "read-only" });
    for (const more of ["ask", "auto"]) {
      await expect(session.setMode(more)).rejects.toMatchObject({ code: "invalid" });
    }
    await session.prompt("go").outcome;
    expect(toolNames(server.requests[0]?.body)).toEqual(["list_files", "read_file", "search_files"]);
  });

  test("`modes` is refused for an agent on which Belay cannot enforce it", async () => {
    const agent = put("agent.mjs", "export const agent = () => {};");
    for (const given of [{ agent }, { acp: ["true"] as const }, {}]) {
      await expect(makeAgent(config({ ...given, modes: ["read-only"] }), parts())).rejects.toThrow("cannot enforce");
    }
  });

  test("follows the mode of its session, turn by turn and call by call", async () => {
    const tools = put("tools.mjs", TOOLS);
    const write = (path: string) => ({ call: { name: "write_file", input: { path, text: "x" } } });
    await using server = await startProvider([
      [write("by-auto.txt")],
      [write("by-ask.txt")],
      [write("never.txt"), { call: { name: "own_tool", input: {} } }],
      [{ text: "done" }],
    ]);
    const given = config({ model: "openai/gpt-x", mode: "auto", tools });
    const { agent } = await makeAgent(given, parts({ env: { OPENAI_BASE_URL: server.baseURL } }));
    // The mode changes before the second call is admitted.
    const beforeCall = async ({ sessionId, input }: HookedCall): Promise<void> => {
      if (JSON.stringify(input).includes("by-ask")) await belay.session(sessionId).setMode("ask");
    };
    const hooks = { beforeCall };
    await using belay = await openBelay({ agent, store: ":memory:", processes: { workspace: folder }, hooks });
    expect(await belay.status()).toMatchObject({ mode: "auto", modes: [{ id: "ask" }, { id: "auto" }, {}] });
    const session = await belay.createSession();
    const run = session.prompt("go");
    for await (const { type } of session.events()) if (type === "question.asked") break;
    expect(existsSync(join(folder, "by-auto.txt"))).toBe(true);
    await session.setMode("read-only");
    // The approval that was requested before the change is still valid.
    await belay.questions.allow((await session.questions())[0]?.id ?? "");
    expect(await run.outcome).toMatchObject({ kind: "completed" });
    expect(["by-ask.txt", "never.txt"].map((name) => existsSync(join(folder, name)))).toEqual([true, false]);
    const bodies = server.requests.map(({ body }) => body);
    expect(toolNames(bodies[0])).toContain("own_tool");
    expect(toolNames(bodies[2])).toEqual(["list_files", "read_file", "search_files"]);
    expect(JSON.stringify(bodies[2])).toContain("You cannot write files or run commands");
    const last = JSON.stringify(bodies[3]);
    expect(last).toContain("the current mode read-only has no tool `write_file`");
    expect(last).toContain("has no tool `own_tool`");
    expect(server.violations).toEqual([]);
  });

  test("works on the files of the workspace and cannot read the store", async () => {
    put("a.txt", "in the file\n");
    const store = put("belay.db", "private words");
    await using server = await startProvider([
      [
        { call: { name: "read_file", input: { path: "a.txt" } } },
        { call: { name: "read_file", input: { path: "belay.db" } } },
        { call: { name: "write_file", input: { path: "b.txt", text: "written" } } },
      ],
      [{ text: "done" }],
    ]);
    const given = config({ model: "openai/gpt-x", mode: "auto", store });
    const { agent } = await makeAgent(given, parts({ env: { OPENAI_BASE_URL: server.baseURL } }));
    expect(await answered(agent, "go")).toMatchObject({ kind: "completed" });
    const request = JSON.stringify(server.requests[1]?.body);
    expect(request).toContain("in the file");
    expect(request).toContain("belongs to Belay itself");
    expect(request).not.toContain("private words");
    expect(readFileSync(join(folder, "b.txt"), "utf8")).toBe("written");
  });

  test("works in the directory of its session, which its prompt names", async () => {
    const project = join(folder, "project");
    mkdirSync(project);
    writeFileSync(join(project, "a.txt"), "of the project");
    await using server = await startProvider([
      [{ call: { name: "read_file", input: { path: "a.txt" } } }],
      [{ text: "done" }],
    ]);
    const given = config({ model: "openai/gpt-x" });
    const { agent } = await makeAgent(given, parts({ env: { OPENAI_BASE_URL: server.baseURL } }));
    await using belay = await openBelay({ agent, store: ":memory:", processes: { workspace: folder } });
    await belay.prompt("go", { cwd: project }).outcome;
    const [first, second] = server.requests.map(({ body }) => JSON.stringify(body));
    expect(first).toContain(`files in \\"${project}\\", the workspace`);
    expect(second).toContain("of the project");
  });

  test("can be an external program, which gets its permissions without approval in the mode auto", async () => {
    const acp = commandOf({});
    const made = await makeAgent(config({ acp, mode: "auto", model: "a/b" }), parts());
    expect(made.describe).toBe(`the agent behind ${process.execPath}`);
    expect(made.notice).toContain("these settings are not used: model");
    const options = { store: ":memory:", processes: { workspace: folder } };
    await using belay = await openBelay({ agent: made.agent, ...options });
    expect(await belay.prompt("ask").text()).toBe("answer: yes");
    await expect(makeAgent(config({ acp, agent: "/a.js" }), parts())).rejects.toThrow("a server has one agent");
    await expect(makeAgent(config({ acp, mode: "read-only" }), parts())).rejects.toThrow("cannot make it read-only");
  });

  test("ends its run at the turn limit of the configuration", async () => {
    await using server = await startProvider(() => [{ call: { name: "list_files", input: {} } }]);
    const given = config({ model: "openai/gpt-x", limits: { turnsMax: 2 } });
    const { agent } = await makeAgent(given, parts({ env: { OPENAI_BASE_URL: server.baseURL } }));
    expect(await answered(agent, "go")).toMatchObject({ kind: "cancelled", reason: { kind: "policy" } });
    expect(server.requests).toHaveLength(2);
  });
});

const TOOLS = `
  export const tools = { own_tool: {
    kind: "tool", options: {}, asks: false,
    describe: async (name) => ({ type: "function", name, description: "mine", inputSchema: { type: "object" } }),
    judge: () => ({ kind: "takes", approval: false }),
    execute: async () => "done",
  } };
`;

describe("a user's module", () => {
  test.each([
    ["agent.mjs", "export const agent = () => 'hello from here';"],
    ["default.ts", "const agent = (): string => 'hello from here'; export default agent;"],
  ])("is the agent: %s", async (name, code) => {
    const path = put(name, code);
    const made = await makeAgent(config({ agent: path }), parts());
    expect([made.describe, made.notice]).toEqual([path, undefined]);
    await using belay = await openBelay({ agent: made.agent, store: ":memory:" });
    expect(await belay.prompt("hi").text()).toBe("hello from here");
  });

  test("that does not exist is reported with its path only", async () => {
    const path = join(folder, "absent.ts");
    await expect(makeAgent(config({ agent: path }), parts())).rejects.toThrow(`${path} does not exist.`);
  });

  test("as the agent adds a notice with the settings that it does not use", async () => {
    const agent = put("agent.mjs", "export const agent = () => 'x';");
    const { notice } = await makeAgent(config({ agent, model: "a/b", mode: "auto" }), parts());
    expect(notice).toContain("these settings are not used: model");
    expect(notice).toContain("The mode auto has no effect");
  });

  test.each([
    ["agent", "export const agent = 3;", "exports is not a function"],
    ["agent", "export const agnet = () => 1;", "does not export `agent`. It exports agnet."],
    ["agent", "import './missing.mjs';", "could not be loaded"],
    ["tools", "export const tools = 3;", "`tools` must be an object of tools by name"],
    ["tools", "export const tools = { x: 3 };", "`x` is not a tool"],
    ["tools", "export const tools = { 'a b': {} };", "`a b` is not a valid tool name"],
    ["tools", "export const tools = [{ x: {} }, { x: {} }];", "two tools `x`"],
    ["tools", TOOLS.replace("own_tool", "shell"), "a tool `shell`, which is a built-in tool"],
  ] as const)("with an invalid export `%s` is reported with its path: %s", async (field, code, message) => {
    const path = put("module.mjs", code);
    const given = config({ model: "openai/gpt-x", [field]: path });
    await expect(makeAgent(given, parts({ env: { OPENAI_BASE_URL: "http://127.0.0.1:9/v1" } }))).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringMatching(new RegExp(`module\\.mjs.*${message.replaceAll(/[.`]/g, ".")}`)),
    });
  });

  test("missing instructions are reported with their path", async () => {
    const given = config({ model: "openai/gpt-x", instructions: { file: join(folder, "none.md") } });
    await expect(makeAgent(given, parts())).rejects.toThrow("none.md cannot be read");
  });
});

test("the default prompt names the workspace and the mode, and is short", () => {
  const prompt = defaultPrompt({ workspace: '/w\n"x', mode: "read-only", instructions: " And so on. " });
  expect(prompt).toContain('"/w\\n\\"x"');
  expect(prompt).toContain("You cannot write files or run commands");
  expect(prompt.endsWith("\n\nAnd so on.")).toBe(true);
  expect(defaultPrompt({ workspace: "/w", mode: "ask" }).length).toBeLessThan(1_600);
});

test("openOptions() returns the options of openBelay() that a configuration sets", () => {
  const limits = { graceMs: 5, runLimitMs: 6, liveRunsMax: 7, turnsMax: 8 };
  const processes = { profile: "contain", env: { allow: ["LANG"] } } as const;
  expect(openOptions(config({ limits, directories: "any", processes }))).toEqual({
    ...{ directories: "any", graceMs: 5, runLimitMs: 6, liveRunsMax: 7 },
    processes: { workspace: folder, profile: "contain", env: { allow: ["LANG"] }, graceMs: 5 },
  });
});
