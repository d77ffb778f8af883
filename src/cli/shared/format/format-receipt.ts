// Formats the receipts of a command as lines for people: what it covered, and the outcomes that it waited for.

import type { CancelReceipt, SessionReceipt } from "../../../core/model/cancel.ts";
import type { QueueReceipt } from "../../../core/model/command.ts";
import type { AnswerReceipt, QuestionOutcome } from "../../../core/model/question.ts";
import type { AwaitedOutcome } from "../../../ports/control.ts";
import { EXIT_CODE, EXIT_OK } from "../exit-code.ts";
import { formatOutcome, formatReason, formatReceipt, formatSessionReceipt } from "./format-outcome.ts";
import { plainLine } from "./plain-text.ts";

/** Receipts contain notes of users and text of models, which are cut to this length. */
const TEXT_CHARS_MAX = 400;
const harmless = (text: string): string => plainLine(text, TEXT_CHARS_MAX);

/** One line for the target and, for a session, one for everything it covers. */
export function receiptLines(
  target: string,
  receipt: SessionReceipt | (CancelReceipt & AwaitedOutcome),
): readonly string[] {
  if (!("runs" in receipt)) {
    const named = receipt.tool === undefined ? target : `${target} ${plainLine(receipt.tool, TEXT_CHARS_MAX)}`;
    return [`${named}  ${harmless(formatReceipt(receipt))}`, ...waitedLines(target, receipt)];
  }
  const covered = partsOf(target, receipt);
  return [
    `${target}  ${formatSessionReceipt(receipt)}`,
    ...covered.flatMap(({ id, receipt: one }) => [`  ${id}  ${harmless(formatReceipt(one))}`, ...waitedLines(id, one)]),
  ];
}

/** One run, call or process that was to be stopped. Its receipt may include its outcome. */
export interface StopPart {
  readonly id: string;
  readonly receipt: CancelReceipt & AwaitedOutcome;
}

/** The parts that a session's receipt covers; any other receipt has one part. */
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
  if (ended.kind === "settled") return [`    ended: ${harmless(formatOutcome(ended.outcome))}`];
  return [`    not ended within ${ended.waitMs} ms; it is still being stopped: belay follow ${id}`];
}

/** 3 for an unknown id. A cancel that came too late is a success: the receipt has the outcome. */
export const receiptExit = ({ kind }: SessionReceipt | CancelReceipt): number =>
  kind === "unknown" ? EXIT_CODE.not_found : EXIT_OK;

export function formatQueueReceipt(receipt: QueueReceipt): string {
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

export function formatAnswerReceipt(receipt: AnswerReceipt): string {
  switch (receipt.kind) {
    case "recorded":
      return "recorded: your answer is in the log, and the run continues";
    case "settled":
      return `settled: too late, it had ended: ${formatEnding(receipt.ending)}`;
    case "refused":
      return harmless(`refused: ${receipt.message}`);
    case "unknown":
      return "unknown: there is no question of that name";
  }
}

/** An answer that came too late had no effect: a failure, so that a script notices. */
export function answerExit({ kind }: AnswerReceipt): number {
  if (kind === "settled" || kind === "refused") return EXIT_CODE.conflict;
  return kind === "unknown" ? EXIT_CODE.not_found : EXIT_OK;
}

export function formatEnding(ending: QuestionOutcome): string {
  switch (ending.kind) {
    case "allowed":
      return `allowed${by(ending.by)}${ending.remember === "session" ? ", for the whole session" : ""}`;
    case "denied":
      return harmless(`denied${by(ending.by)}${ending.note === undefined ? "" : `: ${ending.note}`}`);
    case "answered":
      return harmless(`answered${by(ending.by)}: ${JSON.stringify(ending.value)}`);
    case "expired":
      return `no answer within ${ending.limitMs} ms`;
    case "withdrawn":
      return harmless(`withdrawn (${formatReason(ending.reason)})`);
  }
}

const by = (name: string | undefined): string => (name === undefined ? "" : ` by ${plainLine(name, 80)}`);
