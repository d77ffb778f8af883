// Tools of the AI SDK, taken as they are: what `tool()` and `dynamicTool()` of `ai` make, and what providers define.
//
// What is used: description, inputSchema, strict, inputExamples, providerOptions, execute, needsApproval,
// toModelOutput, and of provider tools id and args. What is not: the onInput… callbacks, contextSchema, outputSchema,
// deferLoading, title and metadata, which are about a stream, a context and a screen that are the SDK's own.
//
// What the functions are given: `toolCallId` is the call's id here (for needsApproval, which comes before the call has
// one, the provider's); `messages` is empty and `context` is an empty object, because neither exists here; the signal
// is the call's.
import type { JSONObject, LanguageModelV4FunctionTool, SharedV4ProviderOptions } from "@ai-sdk/provider";
import { ControlError } from "../../core/errors.ts";
import type { Json } from "../../core/model/prompt.ts";
import type { LiveCall } from "../../ports/agent.ts";
import { judgement, misfit, requireGoing, type Tool, type ToolDescription } from "./tool.ts";
import { type Awaitable, chain, type InputSchema, type Reading, readSchema } from "./tool-schema.ts";

/** Parameters are `never`: any function fits, and what it really takes is between the SDK and the tool. */
export interface AiSdkTool {
  readonly type?: "function" | "dynamic" | "provider" | undefined;
  readonly inputSchema: unknown;
  readonly description?: string | ((options: never) => string) | undefined;
  readonly strict?: boolean | undefined;
  readonly inputExamples?: readonly { readonly input: unknown }[] | undefined;
  readonly providerOptions?: SharedV4ProviderOptions | undefined;
  readonly execute?: ((input: never, options: never) => unknown) | undefined;
  readonly needsApproval?: boolean | ((input: never, options: never) => Awaitable<boolean>) | undefined;
  readonly toModelOutput?: ((options: never) => Awaitable<AiSdkOutput>) | undefined;
  readonly id?: `${string}.${string}` | undefined;
  readonly args?: Record<string, unknown> | undefined;
  /** Of provider tools; nothing here depends on it. */
  readonly isProviderExecuted?: boolean | undefined;
}

/** What a tool may want the model to read. Parts of content are of many kinds, and only text is looked into. */
export type AiSdkOutput =
  | { readonly type: "text" | "error-text"; readonly value: string }
  | { readonly type: "json" | "error-json"; readonly value: unknown }
  | { readonly type: "execution-denied"; readonly reason?: string | undefined }
  | { readonly type: "content"; readonly value: readonly { readonly type: string; readonly text?: unknown }[] };

export const isAiSdkTool = (given: object): given is AiSdkTool => "inputSchema" in given;

/** Throws `invalid` if the schema is of a kind that nobody here can read. */
export function fromAiSdk(given: AiSdkTool): Tool {
  const schema = readInputSchema(given.inputSchema);
  return {
    kind: "tool",
    options: {},
    asks: given.needsApproval !== undefined && given.needsApproval !== false,
    describe: (name) => describe(name, given, schema),
    judge: (input, { id }) => {
      // There is nothing to approve in what nobody can carry out; the call says so when it begins.
      if (given.execute === undefined) return { kind: "takes", approval: false };
      return chain(schema.check(input), (checked) => {
        if (checked.kind === "misfit") return { kind: "refuses", issues: checked.issues };
        return judgement(() => needsApproval(given, checked.value, id));
      });
    },
    execute: async (call) => {
      if (given.execute === undefined) {
        throw new ControlError("invalid", `Nothing here carries out \`${call.name}\`: the tool has no \`execute\`.`);
      }
      const checked = await schema.check(call.input);
      if (checked.kind === "misfit") throw misfit(call.name, checked.issues);
      requireGoing(call);
      const input = checked.value;
      const options = { toolCallId: call.callId, messages: [], abortSignal: call.signal, context: {} };
      const returned = await given.execute(handed(input), handed(options));
      const output = isAsyncIterable(returned) ? await lastOf(returned, call) : returned;
      if (given.toModelOutput === undefined) return output;
      return recorded(await given.toModelOutput(handed({ toolCallId: call.callId, input, output })));
    },
  };
}

/** A parameter of a function whose types are known to its author alone, which is what `never` above says. */
const handed = (value: unknown): never => value as never;

function readInputSchema(given: unknown): Reading<unknown> {
  // The SDK takes a tool without a schema for one that takes nothing.
  if (given === undefined || given === null) {
    return readSchema({ jsonSchema: { type: "object", properties: {}, additionalProperties: false } });
  }
  // Whether it is one is what readSchema finds out.
  return readSchema(given as InputSchema<unknown>);
}

async function describe(name: string, given: AiSdkTool, schema: Reading<unknown>): Promise<ToolDescription> {
  if (given.type === "provider") {
    if (given.id === undefined) throw new ControlError("invalid", `The provider's tool \`${name}\` has no \`id\`.`);
    return { type: "provider", id: given.id, name, args: given.args ?? {} };
  }
  const { strict, inputExamples, providerOptions } = given;
  const description =
    typeof given.description === "function" ? given.description(handed({ context: {} })) : given.description;
  const told: LanguageModelV4FunctionTool = {
    type: "function",
    name,
    inputSchema: await schema.json(),
    ...(description === undefined ? {} : { description }),
    ...(strict === undefined ? {} : { strict }),
    ...(providerOptions === undefined ? {} : { providerOptions }),
    // The SDK types an example like the input; to the model it is JSON.
    ...(inputExamples === undefined
      ? {}
      : { inputExamples: inputExamples.map(({ input }) => ({ input: input as JSONObject })) }),
  };
  return told;
}

function needsApproval({ needsApproval }: AiSdkTool, input: unknown, id: string): Awaitable<boolean> {
  if (typeof needsApproval !== "function") return needsApproval ?? false;
  return needsApproval(handed(input), handed({ toolCallId: id, messages: [], context: {} }));
}

/**
 * Each value stands for all before it, and the last is the result. Those before it are put aside, so that a stop keeps
 * the newest. Whoever does not look at the signal is stopped at its next value, and its `finally` is run.
 */
async function lastOf(values: AsyncIterable<unknown>, call: LiveCall): Promise<unknown> {
  let last: unknown;
  for await (const value of values) {
    last = value;
    if (value !== undefined) {
      // Checked by whoever takes it: what is not JSON is refused there with a message.
      call.partial(value as Json);
      call.progress(value as Json);
    }
    call.signal.throwIfAborted();
  }
  return last;
}

/**
 * What the tool wants the model to read is what is recorded, in place of what it returned: the log is what the model is
 * given again at every turn, and people should see the same. Text and JSON are recorded as such, errors fail the call,
 * and content with files in it is recorded as the SDK's own `{ type: "content", value }`, its bytes in base64.
 */
function recorded(output: AiSdkOutput): unknown {
  switch (output.type) {
    case "text":
    case "json":
      return output.value;
    case "error-text":
      throw new Error(output.value);
    case "error-json":
      throw new Error(JSON.stringify(output.value) ?? "The tool failed.");
    case "execution-denied":
      throw new Error(output.reason ?? "The tool has denied it.");
    case "content": {
      const texts = output.value.map((part) => (part.type === "text" ? part.text : undefined));
      if (texts.every((text) => text !== undefined)) return texts.join("\n");
      return { type: "content", value: withoutBytes(output.value) };
    }
  }
}

/** A copy with base64 in the place of bytes, wherever a kind of part keeps them. */
function withoutBytes(value: unknown): unknown {
  if (value instanceof ArrayBuffer) return Buffer.from(value).toString("base64");
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (Array.isArray(value)) return value.map(withoutBytes);
  if (typeof value !== "object" || value === null || value instanceof URL) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withoutBytes(inner)]));
}

const isAsyncIterable = (value: unknown): value is AsyncIterable<unknown> =>
  typeof value === "object" && value !== null && Symbol.asyncIterator in value;
