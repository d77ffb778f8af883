// Holds what people were told about their answers, posts and withdrawals against the logs.
import type { CancelReceipt } from "../src/core/cancel.ts";
import type { CallId, QuestionId, SessionId } from "../src/core/ids.ts";
import { INBOX_ITEMS_MAX } from "../src/core/limits.ts";
import type { Facts, QuestionFacts } from "./facts.ts";
import { type AnswerRecord, type CancelRecord, noteOf, type PostRecord, what } from "./records.ts";

type Violate = (rule: string, message: string) => void;

export function checkAnswer(record: AnswerRecord, facts: Facts, violate: Violate): void {
  const { receipt, reply, questionId } = record;
  const question = facts.questions.get(questionId);
  const lie = (why: string): void => violate("G10", `${what(record)} was told "${receipt?.kind}": ${why}.`);
  switch (receipt?.kind) {
    case "recorded":
      if (receipt.questionId !== questionId) lie("that is another question");
      if (JSON.stringify(question?.ending) !== JSON.stringify(reply)) lie("that is not how it ended");
      if (question !== undefined && misfits(record, question)) lie("it does not fit the question");
      return;
    case "settled":
      if (JSON.stringify(question?.ending) !== JSON.stringify(receipt.ending)) lie("that is not how it ended");
      return;
    case "refused":
      if (question !== undefined && !misfits(record, question)) lie("it fits the question");
      return;
    case "unknown":
      if (record.known && !facts.trims.has(record.session)) lie("it is in the log");
      return;
    default:
      return;
  }
}

/** Whether this is no answer to what is asked: another kind, other bytes, or none of the options. */
function misfits({ reply, digest }: AnswerRecord, { about }: QuestionFacts): boolean {
  if (about.kind === "approval") return reply.kind === "answered" || (digest !== undefined && digest !== about.digest);
  if (reply.kind !== "answered") return true;
  return about.only === true && !(about.options ?? []).some((option) => option === reply.value);
}

export function checkPost(record: PostRecord, facts: Facts, violate: Violate): void {
  const { receipt, session, text } = record;
  if (receipt?.kind === "refused") {
    if (receipt.code === "closed" && facts.closed.get(session) !== undefined) return;
    if (receipt.code === "queue_full" && everInInbox(facts, session) >= INBOX_ITEMS_MAX) return;
    violate("G3", `${what(record)} was refused (${receipt.code}), and need not have been.`);
    return;
  }
  const event = receipt === undefined ? undefined : facts.at(session, receipt.seq);
  if (event?.type !== "inbox.added" || event.item.text !== text) {
    violate("G1", `${what(record)} was told "posted", but the log does not have it.`);
  }
}

/** What was ever put into an inbox, or could have been, with some that the log does not have. */
function everInInbox(facts: Facts, session: SessionId): number {
  const log = facts.log(session);
  const kept = log.filter(({ type }) => type === "inbox.added" || type === "process.requested");
  return kept.length + UNRECORDED_MAX;
}

/** As many as can have been refused by the store, or have been on their way to it. */
const UNRECORDED_MAX = 3;

export function checkWithdrawal(record: CancelRecord, receipt: CancelReceipt, facts: Facts, violate: Violate): void {
  const question = facts.questions.get(record.target as QuestionId);
  const lie = (why: string): void => violate("G10", `${what(record)} was told "${receipt.kind}": ${why}.`);
  const ending = question?.ending;
  switch (receipt.kind) {
    case "withdrawn": {
      const call = facts.works.get(question?.owner as CallId);
      if (ending?.kind !== "withdrawn") lie("that is not how it ended");
      else if (noteOf(ending.reason) !== record.note) lie("somebody else took it back");
      else if (question?.about.kind === "approval" && call?.cancel === undefined) lie("its call goes on");
      return;
    }
    case "stopping":
      lie("questions are not stopped");
      return;
    case "settled": {
      const kind = ending?.kind === "withdrawn" || ending?.kind === "expired" ? "cancelled" : "completed";
      if (ending === undefined || receipt.outcome.kind !== kind) lie("it did not end like this");
      return;
    }
    case "unknown":
      // It may have been asked after somebody has guessed its name.
      if (record.known && !facts.trims.has(record.session)) lie("it is in the log");
  }
}
