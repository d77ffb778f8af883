import { jsonSchema, zodSchema } from "@ai-sdk/provider-utils";
import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { noProcesses } from "../../../test/fixtures/no-processes.ts";
import type { Json } from "../../core/model/prompt.ts";
import type { LiveCall } from "../../ports/agent.ts";
import { manualClock } from "../../testing/manual-clock.ts";
import { type Tool, tool } from "./tool.ts";
import type { PlainSchema, StandardResult, StandardSchema } from "./tool-schema.ts";

function callOf(input: Json, signal: AbortSignal = new AbortController().signal): LiveCall {
  return {
    ...({ sessionId: "ses_1", runId: "run_1", callId: "call_1", name: "read_file" } as const),
    ...{ cwd: undefined, mode: undefined },
    input,
    signal,
    stopping: false,
    clock: manualClock(),
    processes: noProcesses,
    partial: () => undefined,
    progress: () => undefined,
    changed: () => undefined,
    ask: () => Promise.reject(new Error("no answer")),
  };
}

const description = "Reads a file.";
const echo = (input: unknown): unknown => input;
const judge = (one: Tool, input: Json) => one.judge(input, { id: "toolu_1" });

/** A hand-written schema: the standard needs no library. */
function handMade(
  validate: (value: unknown) => StandardResult<{ path: string }> | Promise<StandardResult<{ path: string }>>,
): StandardSchema<{ path: string }> {
  return {
    "~standard": {
      version: 1,
      vendor: "hand",
      validate,
      jsonSchema: { input: () => ({ type: "object", properties: { path: { type: "string" } } }) },
    },
  };
}

const pathOf = (value: unknown): StandardResult<{ path: string }> =>
  typeof value === "object" && value !== null && "path" in value && typeof value.path === "string"
    ? { value: { path: `/${value.path}` } }
    : { issues: [{ message: "a path is wanted", path: [{ key: "path" }] }] };

describe("the input of a tool", () => {
  test("a zod schema is sent as closed JSON Schema, and the tool gets its output", async () => {
    const input = z.object({
      path: z.string(),
      lines: z.number().default(3),
      nested: z.array(z.object({})).optional(),
    });
    const one = tool({ description, input, execute: echo });
    expect(await one.describe("read_file")).toEqual({
      type: "function",
      name: "read_file",
      description,
      inputSchema: {
        $schema: "http://json-schema.org/draft-07/schema#",
        type: "object",
        properties: {
          path: { type: "string" },
          lines: { type: "number", default: 3 },
          nested: { type: "array", items: { type: "object", properties: {}, additionalProperties: false } },
        },
        required: ["path"],
        additionalProperties: false,
      },
    });
    expect(await one.execute(callOf({ path: "a", more: 1 }))).toEqual({ path: "a", lines: 3 });
  });

  test("objects that declare additionalProperties stay as they are", async () => {
    const one = tool({ description, input: z.looseObject({ a: z.record(z.string(), z.number()) }), execute: echo });
    expect(await one.describe("a")).toMatchObject({
      inputSchema: { additionalProperties: {}, properties: { a: { additionalProperties: { type: "number" } } } },
    });
  });

  test.each([
    ["at once", pathOf],
    ["later", async (value: unknown) => pathOf(value)],
  ])("a hand-written schema that validates %s", async (_, validate) => {
    const one = tool({ description, input: handMade(validate), execute: echo });
    expect(await one.execute(callOf({ path: "a" }))).toEqual({ path: "/a" });
    await expect(one.execute(callOf({}))).rejects.toThrow("fit the schema of `read_file`: path: a path is wanted.");
    expect(await judge(one, {})).toEqual({ kind: "refuses", issues: ["path: a path is wanted"] });
  });

  test("a plain JSON Schema is sent unchanged, and inputs are not checked", async () => {
    const one = tool({ description, input: { jsonSchema: { type: "object" } }, execute: echo });
    expect(await one.describe("a")).toMatchObject({ inputSchema: { type: "object" } });
    expect(await one.execute(callOf([1, "two"]))).toEqual([1, "two"]);
  });

  test("a plain JSON Schema with a hand-written or a library validator", async () => {
    const shout = (input: Json): string => {
      if (typeof input !== "string") throw new Error("a string is wanted");
      return input.toUpperCase();
    };
    const own = tool({ description, input: { jsonSchema: { type: "string" }, validate: shout }, execute: echo });
    expect(await own.execute(callOf("a"))).toBe("A");
    await expect(own.execute(callOf(1))).rejects.toThrow("a string is wanted");
    const library = tool({ description, input: { jsonSchema: {}, validate: handMade(pathOf) }, execute: echo });
    expect(await library.execute(callOf({ path: "a" }))).toEqual({ path: "/a" });
  });

  test.each([
    ["jsonSchema()", jsonSchema({ type: "object" })],
    ["jsonSchema() of a promise", jsonSchema(Promise.resolve({ type: "object" as const }))],
    ["lazySchema()", () => jsonSchema({ type: "object" })],
    ["zodSchema()", zodSchema(z.object({ path: z.string() }))],
  ])("a schema of the AI SDK: %s", async (_, input) => {
    const one = tool({ description, input, execute: echo });
    expect(await one.describe("a")).toMatchObject({ inputSchema: { type: "object" } });
    expect(await one.execute(callOf({ path: "a" }))).toEqual({ path: "a" });
  });

  test("issues of an AI SDK schema are reported by path", async () => {
    const one = tool({ description, input: zodSchema(z.object({ path: z.string() })), execute: echo });
    await expect(one.execute(callOf({ path: 1 }))).rejects.toThrow("path: Invalid input: expected string");
  });

  test("a schema without JSON Schema is refused with advice", () => {
    const { jsonSchema: _, ...mute } = handMade(pathOf)["~standard"];
    expect(() => tool({ description, input: { "~standard": mute }, execute: echo })).toThrow(
      "{ jsonSchema: {…}, validate: schema }",
    );
    // The compiler sees it too: a JSON Schema is not itself what `input` takes.
    // @ts-expect-error -- on purpose
    expect(() => tool({ description, input: { type: "object" }, execute: echo })).toThrow("{ jsonSchema: … }");
  });

  test("of many issues some are reported, each of them shortened", async () => {
    const issues = Array.from({ length: 20 }, (_, index) => ({ message: `${index}`.repeat(500) }));
    const one = tool({ description, input: handMade(() => ({ issues })), execute: echo });
    const error = await one.execute(callOf({})).catch((thrown) => thrown);
    expect(String(error)).toContain("and 12 more");
    expect(String(error).length).toBeLessThan(2_000);
  });
});

describe("types", () => {
  test("the input has the type of the schema's output", () => {
    tool({
      description,
      input: z.object({ path: z.string(), at: z.string().transform((text) => new Date(text)) }),
      approval: (input) => {
        expectTypeOf(input).toEqualTypeOf<{ path: string; at: Date }>();
        return false;
      },
      execute: (input, call) => {
        expectTypeOf(input).toEqualTypeOf<{ path: string; at: Date }>();
        expectTypeOf(call).toEqualTypeOf<LiveCall>();
      },
    });
    tool({ description, input: handMade(pathOf), execute: (i) => expectTypeOf(i).toEqualTypeOf<{ path: string }>() });
    tool({ description, input: jsonSchema<{ a: 1 }>({}), execute: (i) => expectTypeOf(i).toEqualTypeOf<{ a: 1 }>() });
    tool({ description, input: { jsonSchema: {} }, execute: (i) => expectTypeOf(i).toEqualTypeOf<Json>() });
    tool<PlainSchema<{ a: 1 }>>({
      description,
      input: { jsonSchema: {} },
      execute: (i) => expectTypeOf(i).toEqualTypeOf<{ a: 1 }>(),
    });
    tool({
      description,
      input: { jsonSchema: {}, validate: async () => 7 },
      execute: (i) => expectTypeOf(i).toEqualTypeOf<number>(),
    });
  });
});

describe("approval", () => {
  const input = z.object({ path: z.string() });

  test.each([
    [undefined, false],
    [true, true],
    [{ note: "careful" }, { note: "careful" }],
    [({ path }: { path: string }) => path === "/etc", true],
    [async () => ({ scope: "files" }), { scope: "files" }],
  ])("%s", async (approval, expected) => {
    const one = tool({ description, input, execute: echo, ...(approval === undefined ? {} : { approval }) });
    expect(await judge(one, { path: "/etc" })).toEqual({ kind: "takes", approval: expected });
  });

  test.each([
    [
      "throws",
      () => {
        throw new Error("no idea");
      },
    ],
    ["rejects", () => Promise.reject(new Error("no idea"))],
  ])("is required if the function %s", async (_, approval) => {
    const one = tool({ description, input, execute: echo, approval });
    const note = "The approval callback failed: no idea";
    expect(await judge(one, { path: "a" })).toEqual({ kind: "takes", approval: { note } });
  });
});

describe("execution", () => {
  test("a call cancelled while its input is checked does not begin", async () => {
    const controller = new AbortController();
    const input = handMade(async (value) => {
      controller.abort(new Error("stop"));
      return pathOf(value);
    });
    const one = tool({ description, input, execute: () => expect.unreachable() });
    await expect(one.execute(callOf({ path: "a" }, controller.signal))).rejects.toThrow("stop");
  });

  test("G11: nor does an uninterruptible one, which is not signalled", async () => {
    const call = { ...callOf({ path: "a" }), stopping: false };
    const input = handMade(async (value) => {
      call.stopping = true;
      return pathOf(value);
    });
    const one = tool({ description, input, interruptible: false, execute: () => expect.unreachable() });
    await expect(one.execute(call)).rejects.toThrow("It was stopped before it began.");
  });

  test("options of the call are passed on", () => {
    const options = { idempotent: true, interruptible: false, timeoutMs: 5 };
    expect(tool({ description, input: { jsonSchema: {} }, execute: echo, ...options }).options).toEqual(options);
    expect(tool({ description, input: { jsonSchema: {} }, execute: echo }).options).toEqual({});
  });
});

describe("refused definitions", () => {
  const good = { description, input: { jsonSchema: {} }, execute: echo };
  const module = new URL("data:text/javascript,");

  test.each([
    ["a slip of the fingers", { ...good, timeoutMS: 5 }, "A tool has no `timeoutMS`. Did you mean `timeoutMs`?"],
    ["an unknown option", { ...good, colour: "red" }, "It has description, input, execute"],
    ["no description", { ...good, description: " " }, "must have a `description`"],
    ["nothing to run", { description, input: good.input }, "either `execute` or `untrusted`"],
    ["two things to run", { ...good, untrusted: { module } }, "either `execute` or `untrusted`"],
    ["no function", { ...good, execute: "echo" }, "`execute` must be a function"],
    ["a limit that is none", { ...good, timeoutMs: 0 }, "from 1 to"],
    ["a flag that is none", { ...good, idempotent: "yes" }, "`idempotent` must be true or false"],
    ["an unknown word in approval", { ...good, approval: { notes: "" } }, "Did you mean `note`?"],
    ["an approval that is none", { ...good, approval: "ask" }, "`approval` must be true or false"],
    ["no input", { description, execute: echo }, "Standard Schema"],
    [
      "an untrusted tool that cannot be stopped",
      { description, input: good.input, untrusted: { module }, interruptible: false },
      "can always be stopped",
    ],
    [
      "a relative module",
      { description, input: good.input, untrusted: { module: "./tool.js" } },
      "absolute path or a URL",
    ],
    [
      "an unknown option in untrusted",
      { description, input: good.input, untrusted: { module, memory: 1 } },
      "`untrusted` has no `memory`",
    ],
  ])("%s", (_, definition, message) => {
    // What the compiler forbids, as JavaScript code could do it.
    expect(() => tool(definition as never)).toThrow(expect.objectContaining({ code: "invalid" }));
    expect(() => tool(definition as never)).toThrow(message);
  });
});
