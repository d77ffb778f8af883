// Requests with an idempotency key: the same one again gets the same answer, and does nothing.
import type { Command, Refused } from "../model/command.ts";
import type { Answered, Lane } from "../model/lane.ts";
import { type AnswerMemo, keepAnswer } from "../model/memo.ts";
import type { Json } from "../model/prompt.ts";
import { nothing } from "./decide-queue.ts";
import type { Decided } from "./decide-run.ts";

/** The same request again is answered as it was, and changes nothing; the same key for something else is refused. */
export function decideOnce<A>(lane: Lane, command: Command, decideNow: () => Decided<A>): Decided<A> {
  if (command.once === undefined) return decideNow();
  const { key, content } = command.once;
  const before = answeredBefore(lane, key);
  // What was recorded is what this kind of command answers; a key is bound to its content, and so to its command.
  if (before !== undefined) return nothing((before.content === content ? before.answer : KEY_TAKEN) as A);
  const decided = decideNow();
  const { events, answer, memos = [] } = decided;
  // A refusal may pass: the same request can succeed later. Of a session that does not exist nothing need be kept.
  const isAbsent = lane.phase === "absent" && memos.length === 0 && command.type !== "keep-answer";
  if (isAbsent || isRefused(answer)) return decided;
  if (events.length > 0) {
    return { ...decided, events: [...events, { type: "request.answered", key, content, answer: answer as Json }] };
  }
  // What changes nothing leaves no event; sent again, it is still answered like this, and covers nothing later.
  const answered = command.type === "keep-answer" ? command.answer : (answer as Json);
  const kept = keepAnswer(lane.memos, { kind: "answer", key, content, answer: answered });
  return { events, answer, memos: [...memos, ...kept] };
}

/** What was answered to the request with this key, if it is still known. */
export const answeredBefore = (lane: Lane, key: string): Answered | AnswerMemo | undefined =>
  lane.answered.find((one) => one.key === key) ??
  lane.memos.find((one): one is AnswerMemo => one.kind === "answer" && one.key === key);

function isRefused(answer: unknown): boolean {
  return typeof answer === "object" && answer !== null && "kind" in answer && answer.kind === "refused";
}

const KEY_TAKEN: Refused = {
  kind: "refused",
  code: "conflict",
  message: "This idempotency key was used for a different request.",
};
