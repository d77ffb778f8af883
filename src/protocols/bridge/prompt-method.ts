// `session/prompt`: registered when its line is read, notified when it is durable, answered when the run has ended.

import type { Outcome } from "../../core/model/cancel.ts";
import type { RunControl } from "../../ports/control.ts";
import { TEXT_CHARS_MAX } from "./limits.ts";
import type { Method, MethodContext, MethodRequest } from "./method-context.ts";
import { defined, optionalChoice, optionalText, promptOf, text } from "./params.ts";

const DELIVERIES = ["queue", "steer", "interrupt", "reject"] as const;

export const promptMethod = {
  fields: ["sessionId", "prompt", "delivery", "key"],
  sort: "change",
  handle: async (context, request) => {
    const { params } = request;
    const session = context.control.session(text(params, "sessionId"));
    const delivery = optionalChoice(params, "delivery", DELIVERIES);
    const run = session.prompt(promptOf(params), defined({ delivery, key: optionalText(params, "key") }));
    const remove = context.prompts.add(run, request.id);
    try {
      const runId = await notifyAccepted(context, request, run);
      const outcome = await run.outcome;
      await eventsDelivered(context, run);
      return { kind: "read", read: async () => ({ runId, outcome, ...(await textOf(run, outcome)) }) };
    } finally {
      remove();
    }
  },
} as const satisfies Method;

async function notifyAccepted(context: MethodContext, request: MethodRequest, run: RunControl): Promise<string> {
  const { runId, seq, joined, ahead } = await run.accepted;
  request.record("accepted", runId);
  const { sessionId } = run;
  await context.notify("run/accepted", { sessionId, runId, seq, joined, ahead, requestId: request.id ?? null });
  return runId;
}

/** A subscriber receives the run's end before the answer, and nothing of the run after it. */
async function eventsDelivered(context: MethodContext, run: RunControl): Promise<void> {
  const settledAt = (await run.row().catch(() => undefined))?.settledAt;
  if (settledAt !== undefined) await context.subscriptions.delivered(run.sessionId, settledAt);
}

/** The text of the run. If it cannot be read any more, the outcome is answered without it. */
async function textOf(run: RunControl, outcome: Outcome): Promise<object> {
  // A steer adds no text: the text is the live run's.
  if (outcome.kind === "completed" && outcome.into !== undefined) return { text: "" };
  try {
    const whole = await run.text();
    if (whole.length <= TEXT_CHARS_MAX) return { text: whole };
    return { text: whole.slice(0, TEXT_CHARS_MAX).toWellFormed(), textChars: whole.length };
  } catch {
    return { text: null };
  }
}
