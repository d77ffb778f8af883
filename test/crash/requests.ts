// The requests of the crash loop's clients, in the form of the model's caller history.
import { ControlError } from "../../src/core/errors.ts";
import type { QuestionId, RunId } from "../../src/core/model/ids.ts";
import type { Answer, RequestTypes } from "../oracle/caller-history.ts";

/** Codes that leave open whether the request took effect; any other error is a refusal. */
const UNKNOWN: ReadonlySet<string> = new Set(["disconnected", "unavailable", "internal"]);

export async function answerOf<T>(send: () => Promise<T>): Promise<Answer<T>> {
  try {
    return { kind: "returned", value: await send() };
  } catch (thrown) {
    if (!(thrown instanceof ControlError)) throw thrown;
    return { kind: UNKNOWN.has(thrown.code) ? "unknown" : "refused", code: thrown.code };
  }
}

/** A change that is identified by its place in the log, because others can make the same one. */
export function changeOf(
  runId: RunId,
  type: "run.moved" | "run.settled" | "run.steered",
): RequestTypes["change"]["params"] {
  const like = type === "run.settled" ? { runId, outcome: { kind: "cancelled" } } : { runId };
  return { runId, event: { type, like, unique: false } };
}

export function replyTo(questionId: QuestionId, kind: "allowed" | "denied"): RequestTypes["answer"]["params"] {
  return { questionId, event: { type: "question.settled", like: { questionId, ending: { kind } }, unique: false } };
}
