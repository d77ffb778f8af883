// Adapts tools of the AI SDK: the results of `tool()` and `dynamicTool()` of `ai`, and tools that providers define.
//
// Used: description, inputSchema, strict, inputExamples, providerOptions, execute, needsApproval, toModelOutput, and id
// and args of provider tools. Ignored: the onInput… callbacks, contextSchema, outputSchema, deferLoading, title and
// metadata, which belong to the SDK's own stream, context and user interface.
//
// The functions receive: `toolCallId`, which is Belay's call id (for needsApproval, which runs before the call has one,
// the provider's id); an empty `messages` array and an empty `context` object, because Belay has neither; and the
// call's signal.
import type { JSONObject, LanguageModelV4FunctionTool, SharedV4ProviderOptions } from "@ai-sdk/provider";
import { ControlError } from "../../core/errors.ts";
import type { Json } from "../../core/model/prompt.ts";
import type { LiveCall } from "../../ports/agent.ts";
import { judgement, misfit, type Tool, type ToolDescription, throwIfStopped } from "./tool.ts";
import { type Awaitable, chain, type InputSchema, readSchema, type SchemaReader } from "./tool-schema.ts";

/** Parameters are `never`, so that any function fits; their real types are known to the SDK and the tool. */
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
  /** Set on provider tools. Not used. */
  readonly isProviderExecuted?: boolean | undefined;
}

/** What `toModelOutput` may return. Content has parts of many kinds; only text parts are inspected. */
export type AiSdkOutput =
  | { readonly type: "text" | "error-text"; readonly value: string }
  | { readonly type: "json" | "error-json"; readonly value: unknown }
  | { readonly type: "execution-denied"; readonly reason?: string | undefined }
  | { readonly type: "content"; readonly value: readonly { readonly type: string; readonly text?: unknown }[] };

export const isAiSdkTool = (given: object): given is AiSdkTool => "inputSchema" in given;

/** Throws `invalid` if the schema is of an unsupported kind. */
export function fromAiSdk(given: AiSdkTool): Tool {
  const schema = readInputSchema(given.inputSchema);
  return {
    kind: "tool",
    options: {},
    asks: given.needsApproval !== undefined && given.needsApproval !== false,
    describe: (name) => describe(name, given, schema),
    judge: (input, { id }) => {
      // A tool without `execute` needs no approval: the call fails when it begins.
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
      throwIfStopped(call);
      const input = checked.value;
      const options = { toolCallId: call.callId, messages: [], abortSignal: call.signal, context: {} };
      const returned = await given.execute(handed(input), handed(options));
      const output = isAsyncIterable(returned) ? await lastOf(returned, call) : returned;
      if (given.toModelOutput === undefined) return output;
      return recorded(await given.toModelOutput(handed({ toolCallId: call.callId, input, output })));
    },
  };
}

/** Casts an argument for a function whose parameter types only its author knows (see `AiSdkTool`). */
const handed = (value: unknown): never => value as never;

function readInputSchema(given: unknown): SchemaReader<unknown> {
  // In the SDK, a tool without a schema takes no input.
  if (given === undefined || given === null) {
    return readSchema({ jsonSchema: { type: "object", properties: {}, additionalProperties: false } });
  }
  // `readSchema` checks that it is a schema.
  return readSchema(given as InputSchema<unknown>);
}

async function describe(name: string, given: AiSdkTool, schema: SchemaReader<unknown>): Promise<ToolDescription> {
  if (given.type === "provider") {
    if (given.id === undefined) throw new ControlError("invalid", `The provider's tool \`${name}\` has no \`id\`.`);
    return { type: "provider", id: given.id, name, args: given.args ?? {} };
  }
  const { strict, inputExamples, providerOptions } = given;
  const description =
    typeof given.description === "function" ? given.description(handed({ context: {} })) : given.description;
  const described: LanguageModelV4FunctionTool = {
    type: "function",
    name,
    inputSchema: await schema.json(),
    ...(description === undefined ? {} : { description }),
    ...(strict === undefined ? {} : { strict }),
    ...(providerOptions === undefined ? {} : { providerOptions }),
    // The SDK types an example like the input; the model receives it as JSON.
    ...(inputExamples === undefined
      ? {}
      : { inputExamples: inputExamples.map(({ input }) => ({ input: input as JSONObject })) }),
  };
  return described;
}

function needsApproval({ needsApproval }: AiSdkTool, input: unknown, id: string): Awaitable<boolean> {
  if (typeof needsApproval !== "function") return needsApproval ?? false;
  return needsApproval(handed(input), handed({ toolCallId: id, messages: [], context: {} }));
}

/**
 * Each value replaces the one before, and the last one is the result. Earlier values are kept as partial results, so
 * that a stop keeps the newest. A generator that ignores the signal is stopped at its next value, and its `finally`
 * block runs.
 */
async function lastOf(values: AsyncIterable<unknown>, call: LiveCall): Promise<unknown> {
  let last: unknown;
  for await (const value of values) {
    last = value;
    if (value !== undefined) {
      // `partial` and `progress` reject values that are not JSON, with a message.
      call.partial(value as Json);
      call.progress(value as Json);
    }
    call.signal.throwIfAborted();
  }
  return last;
}

/**
 * Converts the model output of a tool into the result to record, which replaces the returned value: the model reads
 * the log again at every turn, and people should see the same. Text and JSON are recorded as such, errors fail the
 * call, and content with files is recorded as the SDK's `{ type: "content", value }`, with bytes in base64.
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

/** Copies a value and replaces bytes by base64 at any depth. */
function withoutBytes(value: unknown): unknown {
  if (value instanceof ArrayBuffer) return Buffer.from(value).toString("base64");
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (Array.isArray(value)) return value.map(withoutBytes);
  if (typeof value !== "object" || value === null || value instanceof URL) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withoutBytes(inner)]));
}

const isAsyncIterable = (value: unknown): value is AsyncIterable<unknown> =>
  typeof value === "object" && value !== null && Symbol.asyncIterator in value;
