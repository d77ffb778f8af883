// Requests with an idempotency key: a repeated request gets the same answer and has no effect.
import { ANSWER_CHARS_PER_ACTOR_MAX, ANSWERS_PER_ACTOR_MAX } from "../limits.ts";
import type { Command, Refused } from "../model/command.ts";
import type { Answered, Lane } from "../model/lane.ts";
import { type AnswerMemo, keep, memoName } from "../model/memo.ts";
import { charsOf } from "../model/memo-set.ts";
import type { Json } from "../model/prompt.ts";
import { nothing } from "./decide-queue.ts";
import type { Decided } from "./decide-run.ts";

/** A repeated request gets the recorded answer and changes nothing. The same key with other content is refused. */
export function decideOnce<A>(lane: Lane, command: Command, decideNow: () => Decided<A>): Decided<A> {
  if (command.once === undefined) return decideNow();
  const { key, content } = command.once;
  const before = answeredBefore(lane, key);
  // The recorded answer has the type of this command: a key is bound to its content, and so to its command.
  if (before !== undefined) return nothing((before.content === content ? before.answer : KEY_TAKEN) as A);
  const decided = decideNow();
  const { events, answer, memos = [] } = decided;
  // A refusal may be temporary: the same request can succeed later. A partial refusal is recorded, since part of the
  // request was carried out.
  if (isRefused(answer) && events.length === 0) return decided;
  // Nothing needs to be kept for a session that does not exist.
  if (lane.phase === "absent" && memos.length === 0 && command.type !== "keep-answer") return decided;
  // A request that changes nothing leaves no event, so its answer is kept as a memo: when it is sent again it gets this
  // answer and covers nothing new. The same holds for a stop of a session. The log keeps only the latest answers, and
  // every other request names what it covers.
  const isMemo = events.length === 0 || command.type === "cancel-session";
  const actor = "actor" in command && command.actor !== undefined ? { actor: command.actor } : {};
  const said = command.type === "keep-answer" ? command.answer : (answer as Json);
  const isFull = isMemo && !hasRoom(lane, actor.actor, said);
  const given = isFull ? (ANSWERS_FULL as unknown as Json) : said;
  const kept = isMemo && !isFull ? [keep({ kind: "answer", key, content, answer: given, ...actor })] : [];
  return {
    events: events.length === 0 ? events : [...events, { type: "request.answered", key, content, answer: given }],
    answer: (isFull ? ANSWERS_FULL : answer) as A,
    ...(memos.length + kept.length === 0 ? {} : { memos: [...memos, ...kept] }),
  };
}

function hasRoom({ memos }: Lane, actor = "", answer: Json): boolean {
  const { count, chars } = memos.answersOf(actor);
  return count < ANSWERS_PER_ACTOR_MAX && chars + charsOf(answer) <= ANSWER_CHARS_PER_ACTOR_MAX;
}

/** The recorded answer to the request with this key, if it is still kept. */
export const answeredBefore = (lane: Lane, key: string): Answered | AnswerMemo | undefined =>
  lane.answered.find((one) => one.key === key) ?? answerMemo(lane, key);

function answerMemo({ memos }: Lane, key: string): AnswerMemo | undefined {
  const memo = memos.get(memoName({ kind: "answer", key }));
  return memo?.kind === "answer" ? memo : undefined;
}

/** Whether a request was refused because of its key, whatever it requested. */
export const isRefusedForItsKey = ({ code, message }: Refused): boolean =>
  code === "conflict" || message === ANSWERS_FULL.message;

function isRefused(answer: unknown): boolean {
  return typeof answer === "object" && answer !== null && "kind" in answer && answer.kind === "refused";
}

/** The request was carried out, but its answer cannot be kept. */
const ANSWERS_FULL: Refused = {
  kind: "refused",
  code: "queue_full",
  message:
    "The request was carried out, but this session remembers as many requests of its user as it may: " +
    "sent again, it would be carried out again.",
};

const KEY_TAKEN: Refused = {
  kind: "refused",
  code: "conflict",
  message: "This idempotency key was used for a different request.",
};
