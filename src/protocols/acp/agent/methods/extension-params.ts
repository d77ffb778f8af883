// Parameters of extension methods, Belay's own and those of other agents, checked field by field. In a stop only the
// fields that define its scope can be invalid.
import { readableReason, readableWait } from "../../../../core/stop-form.ts";
import { invalidParams } from "../rpc-error.ts";

type Fields = Readonly<Record<string, unknown>>;

export interface CallStopParams {
  readonly sessionId: string;
  readonly toolCallId: string;
  readonly reason: string | undefined;
  readonly remind: boolean | undefined;
  readonly waitMs: number | undefined;
}

/** Hosts use several names for the call's id. */
const CALL_NAMES = ["toolCallId", "tool_call_id", "callId", "call_id"] as const;

export function callStopParams(params: unknown): CallStopParams {
  const fields = fieldsOf(params);
  const name = CALL_NAMES.find((one) => typeof fields[one] === "string" && fields[one] !== "") ?? "toolCallId";
  return {
    sessionId: text(fields, fields.sessionId === undefined ? "session_id" : "sessionId", "sessionId"),
    toolCallId: text(fields, name, "toolCallId"),
    reason: noteOf(fields.reason),
    remind: flagOf(fields.injectReminder) ?? flagOf(fields.inject_reminder),
    waitMs: readableWait(fields.timeoutMs ?? fields.timeout_ms),
  };
}

export interface RunStopParams {
  readonly runId: string;
  readonly reason: string | undefined;
}

export function runStopParams(params: unknown): RunStopParams {
  const fields = fieldsOf(params);
  return { runId: text(fields, "runId"), reason: noteOf(fields.reason) };
}

export function sessionParams(params: unknown): { readonly sessionId: string } {
  return { sessionId: text(fieldsOf(params), "sessionId") };
}

export interface SteerParams {
  readonly sessionId: string;
  readonly prompt: readonly { readonly type: string }[];
}

export function steerParams(params: unknown): SteerParams {
  const fields = fieldsOf(params);
  const { prompt } = fields;
  if (!Array.isArray(prompt) || !prompt.every(isBlock))
    throw invalidParams("`prompt` must be a list of content blocks.");
  return { sessionId: text(fields, "sessionId"), prompt };
}

export interface ModelParams {
  readonly sessionId: string;
  readonly modelId: string;
}

export function modelParams(params: unknown): ModelParams {
  const fields = fieldsOf(params);
  return { sessionId: text(fields, "sessionId"), modelId: text(fields, "modelId") };
}

/**
 * Whether the protocol's schema would accept the block. The fields of each kind are checked again where they are read.
 */
function isBlock(block: unknown): block is { readonly type: string } {
  if (typeof block !== "object" || block === null) return false;
  const fields = block as Fields;
  switch (fields.type) {
    case "text":
      return typeof fields.text === "string";
    case "resource_link":
      return typeof fields.name === "string" && typeof fields.uri === "string";
    case "image":
      return typeof fields.data === "string" && typeof fields.mimeType === "string";
    case "resource":
      return isResource(fields.resource);
    default:
      return typeof fields.type === "string";
  }
}

function isResource(resource: unknown): boolean {
  if (typeof resource !== "object" || resource === null) return false;
  const { uri, text: words, blob } = resource as Fields;
  return typeof uri === "string" && (typeof words === "string" || typeof blob === "string");
}

export function fieldsOf(params: unknown): Fields {
  if (typeof params === "object" && params !== null && !Array.isArray(params)) return params as Fields;
  throw invalidParams("`params` must be an object.");
}

export function text(fields: Fields, name: string, shown: string = name): string {
  const given = fields[name];
  if (typeof given === "string" && given !== "") return given;
  throw invalidParams(`\`${shown}\` is missing.`);
}

/** The note of a reason, in any form in which it was sent. */
function noteOf(given: unknown): string | undefined {
  const reason = readableReason(given);
  return typeof reason === "string" ? reason : reason?.note;
}

const flagOf = (given: unknown): boolean | undefined => (typeof given === "boolean" ? given : undefined);
