// The stop methods: session, run, call, process, question. A stop is never refused because of a parameter that it does
// not need.

import { CALL_WAIT_MS } from "../../core/limits.ts";
import type { CancelReceipt, SessionReceipt } from "../../core/model/cancel.ts";
import { readableReason, readableWait } from "../../core/stop-form.ts";
import type { RunControl } from "../../ports/control.ts";
import { cancelCall } from "../cancel-call.ts";
import type { Params } from "./message.ts";
import type { Method, MethodContext, MethodRequest, Reply } from "./method-context.ts";
import { defined, invalid, optionalChoice, optionalText, text, textOfOne } from "./params.ts";

/** Names that hosts of other agents use for the parameter. */
const CALL_NAMES = ["toolCallId", "tool_call_id", "callId", "call_id"] as const;

const now = (result: unknown): Reply => ({ kind: "now", result });

export const STOP_METHODS = {
  "session/cancel": {
    fields: ["sessionId", "reason", "waitMs", "background", "only", "key"],
    sort: "stop",
    handle: async ({ control }, request) => {
      const { params } = request;
      const background = optionalChoice(params, "background", ["keep", "stop"]);
      const only = optionalChoice(params, "only", ["queue"]);
      const session = control.session(text(params, "sessionId"));
      const receipt = await session.cancel({ ...optionsOf(request), ...defined({ background, only }) });
      return now({ ...receipt, status: sessionStatus(receipt) });
    },
  },
  "session/cancel_tool_call": {
    fields: ["sessionId", ...CALL_NAMES, "reason", "injectReminder", "timeoutMs"],
    sort: "stop",
    handle: async ({ control }, { id, params }) => {
      const session = control.session(text(params, "sessionId"));
      const given = textOfOne(params, CALL_NAMES);
      const remind = params.injectReminder !== false;
      const timeoutMs = readableWait(params.timeoutMs) ?? CALL_WAIT_MS;
      // A notification gets no answer, so it does not wait either.
      const waitMs = id === undefined ? 0 : timeoutMs;
      return now(await cancelCall(session, { given, reason: readableReason(params.reason), remind, waitMs }));
    },
  },
  "run/cancel": {
    fields: ["runId", "requestId", "sessionId", "promptKey", "reason", "waitMs", "key"],
    sort: "stop",
    handle: async (context, request) => now(await cancelRun(context, request)),
  },
  "process/cancel": {
    fields: ["processId", "reason", "waitMs", "key"],
    sort: "stop",
    handle: async (context, request) =>
      now(await context.control.cancel(prefixed(request.params, "processId", "proc_"), optionsOf(request))),
  },
  "question/cancel": {
    fields: ["questionId", "reason", "key"],
    sort: "stop",
    handle: async (context, request) => {
      const { waitMs: _, ...options } = optionsOf(request);
      return now(await context.control.cancel(prefixed(request.params, "questionId", "ask_"), options));
    },
  },
} as const satisfies Record<string, Method>;

/**
 * Cancels a run by its id, by the id of the request that prompted it, which the host knows before the run has an id,
 * or by the key of the prompt.
 */
async function cancelRun({ control, prompts }: MethodContext, request: MethodRequest): Promise<unknown> {
  const { params } = request;
  const { requestId } = params;
  if (typeof requestId === "string" || typeof requestId === "number") {
    const run: RunControl | undefined = prompts.of(requestId);
    return run === undefined ? UNKNOWN : run.cancel(optionsOf(request));
  }
  const key = optionalText(params, "promptKey");
  if (key === undefined) return control.cancel(prefixed(params, "runId", "run_"), optionsOf(request));
  const { waitMs: _, ...options } = optionsOf(request);
  return control.session(text(params, "sessionId")).cancelPrompt(key, options);
}

const UNKNOWN: CancelReceipt = { kind: "unknown" };

/** Checks the kind of an id: an id of another kind is a mistake, and stops nothing. */
function prefixed(params: Params, name: string, prefix: string): string {
  const id = text(params, name);
  if (!id.startsWith(prefix)) throw invalid(`\`${name}\` must begin with "${prefix}".`);
  return id;
}

const optionsOf = ({ params }: MethodRequest) =>
  defined({
    reason: readableReason(params.reason),
    waitMs: readableWait(params.waitMs),
    key: optionalText(params, "key"),
  });

type SessionStatus = "cancelled" | "already_cancelled" | "idle" | "not_found";

/** Whether this request stopped anything that was not being stopped already. */
export function sessionStatus(receipt: SessionReceipt): SessionStatus {
  switch (receipt.kind) {
    case "idle":
      return "idle";
    case "unknown":
      return "not_found";
    case "withdrawn":
      return "cancelled";
    case "stopping": {
      const receipts = [...receipt.runs, ...(receipt.processes ?? [])].map((one) => one.receipt);
      return receipts.some(isFirst) ? "cancelled" : "already_cancelled";
    }
  }
}

const isFirst = (receipt: CancelReceipt): boolean =>
  receipt.kind === "withdrawn" || (receipt.kind === "stopping" && receipt.first);
