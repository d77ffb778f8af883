// Receipts of a remote control as lines for people: what was covered, and what waiting for it brought.

import type { CancelReceipt, SessionReceipt } from "../../../core/model/cancel.ts";
import type { QueueReceipt } from "../../../core/model/command.ts";
import type { AnswerReceipt, QuestionOutcome } from "../../../core/model/question.ts";
import type { AwaitedOutcome } from "../../../ports/control.ts";
import { EXIT_CODE, EXIT_OK } from "../exit-code.ts";
import { sayOutcome, sayReason, sayReceipt, saySessionReceipt } from "./format-outcome.ts";
import { plainLine } from "./plain-text.ts";

/** Notes of people and words of models are in it. */
const WORDS_CHARS_MAX = 400;
const harmless = (text: string): string => plainLine(text, WORDS_CHARS_MAX);

/** One line for the target and, for a session, one for everything it covers. */
export function receiptLines(
  target: string,
  receipt: SessionReceipt | (CancelReceipt & AwaitedOutcome),
): readonly string[] {
  if (!("runs" in receipt)) {
    const named = receipt.tool === undefined ? target : `${target} ${plainLine(receipt.tool, WORDS_CHARS_MAX)}`;
    return [`${named}  ${harmless(sayReceipt(receipt))}`, ...waitedLines(target, receipt)];
  }
  const covered = partsOf(target, receipt);
  return [
    `${target}  ${saySessionReceipt(receipt)}`,
    ...covered.flatMap(({ id, receipt: one }) => [`  ${id}  ${harmless(sayReceipt(one))}`, ...waitedLines(id, one)]),
  ];
}

/** One thing that was to be stopped. Also a receipt of something covered may tell how it ended. */
export interface StopPart {
  readonly id: string;
  readonly receipt: CancelReceipt & AwaitedOutcome;
}

/** What a session's receipt covers; any other is about one thing. */
export function partsOf(
  target: string,
  receipt: SessionReceipt | (CancelReceipt & AwaitedOutcome),
): readonly StopPart[] {
  if (!("runs" in receipt)) return [{ id: target, receipt }];
  const processes = "processes" in receipt ? (receipt.processes ?? []) : [];
  return [
    ...receipt.runs.map(({ runId, receipt: one }) => ({ id: runId, receipt: one })),
    ...processes.map(({ processId, receipt: one }) => ({ id: processId, receipt: one })),
  ];
}

function waitedLines(id: string, { ended }: AwaitedOutcome): readonly string[] {
  if (ended === undefined) return [];
  if (ended.kind === "settled") return [`    ended: ${harmless(sayOutcome(ended.outcome))}`];
  return [`    not ended within ${ended.waitMs} ms; it is still being stopped: belay follow ${id}`];
}

/** 3 if there was nothing of that name. Too late is in order: it has ended, and the receipt says how. */
export const receiptExit = ({ kind }: SessionReceipt | CancelReceipt): number =>
  kind === "unknown" ? EXIT_CODE.not_found : EXIT_OK;

export function sayQueueReceipt(receipt: QueueReceipt): string {
  switch (receipt.kind) {
    case "changed":
      return `changed: recorded at position ${receipt.seq} of the log`;
    case "unchanged":
      return "unchanged: it was like that already";
    case "started":
      return "started: too late, it is under way. To stop it: belay cancel";
    case "unknown":
      return "unknown: it does not wait in this queue";
    case "refused":
      return harmless(`refused: ${receipt.message}`);
  }
}

export function queueExit({ kind }: QueueReceipt): number {
  if (kind === "started" || kind === "refused") return EXIT_CODE.conflict;
  return kind === "unknown" ? EXIT_CODE.not_found : EXIT_OK;
}

export function sayAnswerReceipt(receipt: AnswerReceipt): string {
  switch (receipt.kind) {
    case "recorded":
      return "recorded: your answer is in the log, and what waited for it goes on";
    case "settled":
      return `settled: too late, it had ended: ${sayEnding(receipt.ending)}`;
    case "refused":
      return harmless(`refused: ${receipt.message}`);
    case "unknown":
      return "unknown: there is no question of that name";
  }
}

/** Who came too late has not had a say, and a script should know. */
export function answerExit({ kind }: AnswerReceipt): number {
  if (kind === "settled" || kind === "refused") return EXIT_CODE.conflict;
  return kind === "unknown" ? EXIT_CODE.not_found : EXIT_OK;
}

export function sayEnding(ending: QuestionOutcome): string {
  switch (ending.kind) {
    case "allowed":
      return `allowed${by(ending.by)}${ending.remember === "session" ? ", for the whole session" : ""}`;
    case "denied":
      return harmless(`denied${by(ending.by)}${ending.note === undefined ? "" : `: ${ending.note}`}`);
    case "answered":
      return harmless(`answered${by(ending.by)}: ${JSON.stringify(ending.value)}`);
    case "expired":
      return `nobody answered within ${ending.limitMs} ms`;
    case "withdrawn":
      return harmless(`taken back (${sayReason(ending.reason)})`);
  }
}

const by = (name: string | undefined): string => (name === undefined ? "" : ` by ${plainLine(name, 80)}`);
