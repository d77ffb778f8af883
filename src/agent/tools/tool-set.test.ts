import { tool as aiTool, dynamicTool, jsonSchema, type ToolResultOutput } from "@ai-sdk/provider-utils";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { noProcesses } from "../../../test/fixtures/no-processes.ts";
import type { Json } from "../../core/model/prompt.ts";
import type { CallRequest, LiveCall } from "../../ports/agent.ts";
import { Gate } from "../../testing/gate.ts";
import { manualClock } from "../../testing/manual-clock.ts";
import { slots } from "../loop/slots.ts";
import { tool } from "./tool.ts";
import { type AnyTool, type ToolSet, toolSet } from "./tool-set.ts";

const places = slots(1);
const path = z.object({ path: z.string() });
const provider = { id: "toolu_1" };

const ask = (set: ToolSet, name: string, input: string): Promise<CallRequest> =>
  set.request({ name, input, provider }, places);

class Call implements LiveCall {
  readonly sessionId = "ses_1";
  readonly cwd = undefined;
  mode: string | undefined = undefined;
  readonly runId = "run_1";
  readonly callId = "call_1";
  readonly name: string;
  readonly input: Json;
  readonly clock = manualClock();
  readonly processes = noProcesses;
  readonly controller = new AbortController();
  readonly signal = this.controller.signal;
  readonly stopping = false;
  readonly partials: Json[] = [];
  readonly told: Json[] = [];

  constructor(request: CallRequest, input = request.input) {
    this.name = request.name;
    this.input = input;
  }

  partial(value: Json): void {
    this.partials.push(value);
  }
  progress(value: Json): void {
    this.told.push(value);
  }
  changed(): void {}
  ask(): Promise<never> {
    return Promise.reject(new Error("no answer"));
  }
}

/** Begins the call as the engine does; `input` as a hook may have replaced it. */
const run = async (request: CallRequest, input?: Json): Promise<unknown> => request.execute(new Call(request, input));

const readFile = tool({ description: "Reads a file.", input: path, execute: (input) => ({ read: input.path }) });

/** The approval decision that the engine would get for this input. */
async function wanted(request: CallRequest | undefined, input?: Json): Promise<unknown> {
  const approval = request?.approval;
  return typeof approval === "function" ? approval(input ?? request?.input ?? null, { mode: undefined }) : approval;
}

describe("a call that a model requests", () => {
  const set = toolSet({
    read_file: readFile,
    write_file: tool({
      description: "Writes a file.",
      input: path.extend({ mode: z.string().default("w") }),
      execute: (input) => input,
      approval: ({ path }) => path.startsWith("/etc") && { note: "a system file" },
      idempotent: true,
      interruptible: false,
      timeoutMs: 1000,
    }),
  });

  test("is recorded as requested, and executed as the schema transforms it", async () => {
    const request = await ask(set, "write_file", '{"path":"a","more":1}');
    expect(request).toEqual({
      name: "write_file",
      input: { path: "a", more: 1 },
      provider,
      slots: places,
      idempotent: true,
      interruptible: false,
      timeoutMs: 1000,
      approval: expect.any(Function),
      execute: expect.any(Function),
    });
    expect(await run(request)).toEqual({ path: "a", mode: "w" });
  });

  test("needs approval where the tool says so for its input", async () => {
    const request = await ask(set, "write_file", '{"path":"/etc/passwd"}');
    expect(await wanted(request)).toEqual({ note: "a system file" });
    // By the input that would be executed: a hook may have replaced it.
    expect(await wanted(request, { path: "a" })).toBe(false);
  });

  test("executes the call's input, which a hook may have replaced", async () => {
    const request = await ask(set, "read_file", '{"path":"a"}');
    expect(await run(request, { path: "b" })).toEqual({ read: "b" });
    await expect(run(request, { path: 7 })).rejects.toThrow("path: Invalid input");
  });

  test.each(["", " \n"])("reads the empty text %j as an empty object", async (input) => {
    const nothing = toolSet({ now: tool({ description: "Now.", input: z.object({}), execute: (it) => it }) });
    const request = await ask(nothing, "now", input);
    expect([request.input, await run(request)]).toEqual([{}, {}]);
  });
});

const nested = (levels: number): string => `${"[".repeat(levels)}${"]".repeat(levels)}`;
const cut = (text: string, left: number): string => `${text}… (${left} more characters were not kept)`;

describe("a call that cannot be executed fails with a message, keeps its input, and needs no approval", () => {
  const set = toolSet({
    read_file: tool({ description: "Reads.", input: path, execute: () => expect.unreachable(), approval: true }),
    list: tool({ description: "Lists.", input: path, execute: () => expect.unreachable(), idempotent: true }),
  });

  test.each([
    ["read_fil", "{}", {}, "There is no tool `read_fil`. Did you mean `read_file`? The tools are: read_file, list."],
    ["zzzzzzzz", "{}", {}, "There is no tool `zzzzzzzz`. The tools are: read_file, list."],
    ["constructor", "{}", {}, "There is no tool `constructor`."],
    ["read_file", '{"path":', '{"path":', "The input is not JSON ("],
    ["read_file", `{"path":${"x".repeat(999)}`, `{"path":${"x".repeat(999)}`, "… (1007 characters)."],
    ["read_file", '{"path":1}', { path: 1 }, "path: Invalid input: expected string, received number"],
    ["list", "null", null, "expected object, received null"],
    ["list", '{"a":[{"__proto__":{"b":1}}]}', '{"a":[{"__proto__":{"b":1}}]}', "`__proto__`"],
    ["list", nested(66), nested(66), "nested deeper than 64"],
    ["list", nested(200_000), cut("[".repeat(65_536), 334_464), "nested deeper than 64"],
    ["list", JSON.stringify("x".repeat(2 ** 20)), cut(`"${"x".repeat(65_535)}`, 983_042), "the limit is 1048576"],
    ["write_file", '{"path":"a","text":"b"}', { path: "a", text: "b" }, "There is no tool `write_file`."],
    ["write_file", "{", "{", "There is no tool `write_file`."],
  ])("%s %.20s", async (name, input, recorded, message) => {
    const request = await ask(set, name, input);
    expect(request).toEqual({ name, input: recorded, provider, execute: expect.any(Function) });
    const error = await run(request).catch((thrown) => thrown);
    expect(error).toMatchObject({ name: "ControlError", message: expect.stringContaining(message) });
    expect(String(error).length).toBeLessThan(1_000);
  });

  test("under a name that every provider accepts", async () => {
    const names = ["functions.read file", "", "ä".repeat(500)];
    const requests = await Promise.all(names.map((name) => ask(set, name, "{}")));
    expect(requests.map(({ name }) => name)).toEqual(["functions_read_file", "unnamed", "_".repeat(128)]);
  });

  test("even if its validator throws", async () => {
    const input = { jsonSchema: {}, validate: (): never => expect.unreachable("broken") };
    const broken = toolSet({ broken: tool({ description: "Broken.", input, execute: () => 1 }) });
    await expect(run(await ask(broken, "broken", "{}"))).rejects.toThrow("broken");
  });
});

describe("a logged call, after a restart", () => {
  const resume = (one: AnyTool, input: Json = { path: "a" }): CallRequest | undefined =>
    toolSet({ one }).resume({ callId: "call_1", name: "one", input }, places);
  const define = (approval: Parameters<typeof tool<typeof path>>[0]["approval"]): AnyTool =>
    tool({ description: "One.", input: path, execute: (it) => it, idempotent: true, approval: approval ?? false });

  test("is executed by the tool of its name", async () => {
    const request = resume(define(false));
    expect(request).toEqual({
      name: "one",
      input: { path: "a" },
      idempotent: true,
      slots: places,
      execute: expect.any(Function),
    });
    expect(request && (await run(request))).toEqual({ path: "a" });
  });

  test("is not resumed if its tool no longer exists", () => {
    expect(toolSet(undefined).resume({ callId: "call_1", name: "one", input: {} }, places)).toBeUndefined();
  });

  test("needs the same approval", async () => {
    expect(await wanted(resume(define(true)))).toBe(true);
    expect(await wanted(resume(define(({ path }) => path === "a")))).toBe(true);
    expect(await wanted(resume(define(({ path }) => path === "b")))).toBe(false);
    expect(await wanted(resume(define(async () => false)))).toBe(false);
    expect(resume(define(false))).not.toHaveProperty("approval");
  });

  test("fails if its input no longer fits", async () => {
    const request = resume(define(true), { path: 1 });
    expect(await wanted(request)).toBe(false);
    await expect(request && run(request)).rejects.toThrow("path: Invalid input");
  });
});

describe("the descriptions", () => {
  test("are created once", async () => {
    let made = 0;
    const lazy = jsonSchema(() => {
      made += 1;
      return { type: "object" };
    });
    const set = toolSet({ lazy: tool({ description: "Lazy.", input: lazy, execute: () => 1 }) });
    expect(await set.describe()).toBe(await set.describe());
    expect(made).toBe(1);
  });

  test("name the tool that fails, and are tried again", async () => {
    let there = false;
    const jsonSchemaOf = (): Readonly<Record<string, unknown>> => {
      if (!there) throw new Error("not there");
      return { type: "object" };
    };
    const standard = { ...path["~standard"], jsonSchema: { input: jsonSchemaOf } };
    const input = { "~standard": standard };
    const set = toolSet({ remote: tool({ description: "Remote.", input, execute: () => 1 }) });
    await expect(set.describe()).rejects.toThrow("The tool `remote` cannot be described to the model: not there");
    there = true;
    expect(await set.describe()).toHaveLength(1);
  });

  test("are empty without tools", async () => {
    expect(await toolSet(undefined).describe()).toEqual([]);
  });

  test.each([
    ["read file", readFile, "is not a valid tool name"],
    ["a".repeat(129), readFile, "is not a valid tool name"],
    ["read_file", { description: "", input: path, execute: () => 1 }, "Define it with tool({ … })"],
    ["read_file", undefined, "Define it with tool({ … })"],
    [
      "read_file",
      { inputSchema: { "~standard": { vendor: "old" } } },
      "`read_file` cannot be described to the model: This schema of old",
    ],
  ])("%.20s is refused", (name, given, message) => {
    // What the compiler forbids, as JavaScript code could do it.
    expect(() => toolSet({ [name]: given as never })).toThrow(message);
  });
});

describe("tools of the AI SDK", () => {
  test("work unchanged", async () => {
    let seen: unknown;
    const set = toolSet({
      weather: aiTool({
        description: "The weather.",
        inputSchema: z.object({ city: z.string(), days: z.number().default(1) }),
        strict: true,
        inputExamples: [{ input: { city: "Ulm", days: 2 } }],
        providerOptions: { anthropic: { cache: true } },
        execute: async ({ city, days }, options) => {
          seen = options;
          return { city, days };
        },
      }),
    });
    expect(await set.describe()).toMatchObject([
      {
        type: "function",
        name: "weather",
        description: "The weather.",
        strict: true,
        inputExamples: [{ input: { city: "Ulm", days: 2 } }],
        providerOptions: { anthropic: { cache: true } },
        inputSchema: { type: "object", required: ["city"], additionalProperties: false },
      },
    ]);
    expect(await run(await ask(set, "weather", '{"city":"Ulm"}'))).toEqual({ city: "Ulm", days: 1 });
    expect(seen).toMatchObject({ toolCallId: "call_1", messages: [], context: {}, abortSignal: expect.anything() });
    await expect(run(await ask(set, "weather", "{}"))).rejects.toThrow("city: Invalid input");
  });

  test("a dynamic tool with a lazy description", async () => {
    const set = toolSet({
      any: dynamicTool({ description: () => "Anything.", inputSchema: z.unknown(), execute: async (input) => input }),
    });
    expect(await set.describe()).toMatchObject([{ type: "function", name: "any", description: "Anything." }]);
    expect(await run(await ask(set, "any", "[1]"))).toEqual([1]);
  });

  test("needsApproval requires approval, always or by the input", async () => {
    const inputSchema = path;
    const execute = async (): Promise<number> => 1;
    const set = toolSet({
      always: aiTool({ inputSchema, execute, needsApproval: true }),
      some: aiTool({
        inputSchema,
        execute,
        needsApproval: async ({ path }, { toolCallId }) => path === "/etc" && toolCallId === "toolu_1",
      }),
    });
    expect(await wanted(await ask(set, "always", '{"path":"a"}'))).toBe(true);
    expect(await wanted(await ask(set, "some", '{"path":"/etc"}'))).toBe(true);
    expect(await wanted(await ask(set, "some", '{"path":"a"}'))).toBe(false);
  });

  test("each yielded value is a partial result and progress, and the last is the result", async () => {
    const inputSchema = path;
    async function* execute() {
      yield { found: 1 };
      yield { found: 2 };
    }
    const set = toolSet({ search: aiTool({ inputSchema, execute }) });
    const request = await ask(set, "search", '{"path":"a"}');
    const call = new Call(request);
    expect(await request.execute(call)).toEqual({ found: 2 });
    expect([call.partials, call.told]).toEqual([
      [{ found: 1 }, { found: 2 }],
      [{ found: 1 }, { found: 2 }],
    ]);
  });

  test("a stop ends a generator at its next value, runs its `finally`, and keeps the newest value", async () => {
    const gate = new Gate();
    const begun = new Gate();
    let tidied = false;
    async function* execute() {
      try {
        yield 1;
        begun.open();
        await gate.opened;
        yield 2;
        expect.unreachable();
      } finally {
        tidied = true;
      }
    }
    const set = toolSet({ search: aiTool({ inputSchema: path, execute }) });
    const request = await ask(set, "search", '{"path":"a"}');
    const call = new Call(request);
    const result = request.execute(call);
    await begun.opened;
    call.controller.abort(new Error("stop"));
    gate.open();
    await expect(result).rejects.toThrow("stop");
    expect([call.partials, tidied]).toEqual([[1, 2], true]);
  });

  test("a tool without `execute` fails, and needs no approval", async () => {
    const set = toolSet({
      elsewhere: aiTool({ inputSchema: path, outputSchema: path, needsApproval: true }),
    });
    const request = await ask(set, "elsewhere", '{"path":"a"}');
    expect(await wanted(request)).toBe(false);
    await expect(run(request)).rejects.toThrow("Nothing here carries out `elsewhere`");
  });

  test("tools of a provider are described as such, and executed if they have `execute`", async () => {
    const set = toolSet({
      shell: {
        type: "provider",
        id: "openai.shell",
        args: { limit: 1 },
        isProviderExecuted: false,
        inputSchema: z.object({ command: z.string() }),
        execute: async ({ command }: { command: string }) => command,
      },
      search: { type: "provider", id: "openai.search", isProviderExecuted: true, inputSchema: undefined },
    });
    expect(await set.describe()).toEqual([
      { type: "provider", id: "openai.shell", name: "shell", args: { limit: 1 } },
      { type: "provider", id: "openai.search", name: "search", args: {} },
    ]);
    expect(await run(await ask(set, "shell", '{"command":"ls"}'))).toBe("ls");
  });

  const bytes = { type: "file", data: { type: "data", data: new Uint8Array([1, 2]) }, mediaType: "image/png" } as const;

  test.each<[ToolResultOutput, unknown]>([
    [{ type: "text", value: "two" }, "two"],
    [{ type: "json", value: { two: 2 } }, { two: 2 }],
    [{ type: "content", value: [1, 2].map((n) => ({ type: "text", text: `${n}` })) }, "1\n2"],
    [
      { type: "content", value: [{ type: "text", text: "a picture" }, bytes] },
      {
        type: "content",
        value: [
          { type: "text", text: "a picture" },
          { ...bytes, data: { type: "data", data: "AQI=" } },
        ],
      },
    ],
    [{ type: "error-text", value: "no" }, new Error("no")],
    [{ type: "error-json", value: { no: 1 } }, new Error('{"no":1}')],
    [{ type: "execution-denied", reason: "not you" }, new Error("not you")],
  ])("toModelOutput decides what is recorded: %j", async (output, expected) => {
    const one = aiTool({
      inputSchema: path,
      execute: async () => 2,
      toModelOutput: ({ output: two, input, toolCallId }) => {
        expect([two, input, toolCallId]).toEqual([2, { path: "a" }, "call_1"]);
        return output;
      },
    });
    const request = await ask(toolSet({ one }), "one", '{"path":"a"}');
    expect(await run(request).catch((error) => error)).toEqual(expected);
  });
});

test("G11: an uninterruptible call begins in the tick in which its stop was checked", async () => {
  let begun = false;
  const build = tool({
    description: "Builds.",
    input: path,
    interruptible: false,
    execute: () => {
      begun = true;
    },
  });
  const request = await ask(toolSet({ build }), "build", '{"path":"a"}');
  const ended = run(request);
  // A later stop is not signalled to it, so it must not wait for anything before it begins.
  expect(begun).toBe(true);
  await ended;
});

describe("tools and the mode of a session", () => {
  const done: Json[] = [];
  const work = tool({ description: "Works.", input: path, execute: (input) => void done.push(input.path) });
  /** Asks in `ask`, does not in `auto`, and is absent in `read`. */
  const moded: AnyTool = {
    ...work,
    asks: true,
    judge: (_, { mode }) => ({ kind: "takes", approval: mode === "ask" }),
  };
  const set = toolSet({ work: moded, read_file: readFile }, (name, mode) => mode !== "read" || name === "read_file");
  const asked = (mode?: string): Promise<CallRequest> =>
    set.request({ name: "work", input: '{"path":"a"}', provider }, places, mode);
  const letIn = (request: CallRequest, mode: string): unknown =>
    typeof request.approval === "function" ? request.approval(request.input, { mode }) : request.approval;
  const begin = async (request: CallRequest, mode: string): Promise<unknown> => {
    done.length = 0;
    await request.execute(Object.assign(new Call(request), { mode }));
    return done;
  };

  test("only tools of the mode are described, and all without modes", async () => {
    const names = async (mode?: string) => (await set.describe(mode)).map(({ name }) => name);
    expect(await names()).toEqual(["work", "read_file"]);
    expect(await names("auto")).toEqual(["work", "read_file"]);
    expect(await names("read")).toEqual(["read_file"]);
  });

  test("a tool that the mode lacks is refused by name, without approval", async () => {
    const request = await asked("read");
    expect(request.approval).toBeUndefined();
    await expect(begin(request, "read")).rejects.toThrow("the current mode read has no tool `work`");
    const unknown = await set.request({ name: "wrok", input: "{}", provider }, places, "read");
    await expect(begin(unknown, "read")).rejects.toThrow("The tools are: read_file.");
  });

  test("the mode at admission decides about approval, not the mode of the answer", async () => {
    expect(await letIn(await asked("auto"), "ask")).toBe(true);
    expect(await letIn(await asked("ask"), "auto")).toBe(false);
    const gone = await asked("auto");
    expect(await letIn(gone, "read")).toBe(false);
    await expect(begin(gone, "read")).rejects.toThrow("Nothing was done");
  });

  test("a call admitted without approval is checked against the mode in which it begins", async () => {
    const request = await asked("auto");
    expect(await letIn(request, "auto")).toBe(false);
    await expect(begin(request, "read")).rejects.toThrow("has no tool `work`");
    await expect(begin(request, "ask")).rejects.toThrow("the mode was changed to ask while `work` waited");
    expect(await begin(request, "auto")).toEqual(["a"]);
  });

  test("an approval stands, whatever mode was set since", async () => {
    const request = await asked("ask");
    expect(await letIn(request, "ask")).toBe(true);
    expect(await begin(request, "read")).toEqual(["a"]);
  });

  test("a call resumed after a restart is checked against the current mode", async () => {
    const again = set.resume({ callId: "call_1", name: "work", input: { path: "a" } }, places);
    if (again === undefined) throw new Error("There is such a tool.");
    expect(await letIn(again, "ask")).toBe(true);
    const gone = set.resume({ callId: "call_1", name: "work", input: { path: "a" } }, places);
    if (gone === undefined) throw new Error("There is such a tool.");
    await expect(begin(gone, "read")).rejects.toThrow("has no tool `work`");
  });
});
