// Audit records of the bridge: one for every request that changes something, even if it is refused.
import type { ControlCode } from "../../core/errors.ts";
import type { Json } from "../../core/model/prompt.ts";
import type { Params } from "./message.ts";

export interface AuditRecord {
  readonly id: string;
  /** Wall clock, ms. */
  readonly at: number;
  readonly actor: "bridge";
  readonly via: "bridge";
  readonly action: string;
  readonly target?: string;
  /** The kind of the receipt, or `refused`. */
  readonly answer: string;
  readonly code?: ControlCode;
}

/** The sink for audit records. */
export interface Audit {
  note(record: AuditRecord): Promise<void>;
}

/** Parameters that name the target, the most specific first. */
const TARGETS = ["questionId", "processId", "callId", "call_id", "toolCallId", "tool_call_id", "runId", "sessionId"];

/** Belay's ids are shorter; a longer one was made up. */
const TARGET_CHARS_MAX = 128;

export function targetOf(params: Params): string | undefined {
  const named = TARGETS.map((name) => params[name]).find((one) => typeof one === "string" && one !== "");
  return typeof named === "string" ? named.slice(0, TARGET_CHARS_MAX) : undefined;
}

/** The answer as one word. */
export function answerWord(result: unknown): string {
  if (typeof result !== "object" || result === null) return "done";
  const { status, kind } = result as { readonly status?: Json; readonly kind?: Json };
  if (typeof status === "string") return status;
  return typeof kind === "string" ? kind : "done";
}
