// Validates questions and approvals of agents and tools, before anything is recorded.

import { checkJson, checkMs, invalid, isObject, isString, rejectUnknown } from "../../core/input.ts";
import { NOTE_CHARS_MAX, QUESTION_BYTES_MAX } from "../../core/limits.ts";
import { utf8Bytes } from "../../core/model/prompt.ts";
import type { QuestionOutcome, Subject } from "../../core/model/question.ts";
import type { ApprovalOption, QuestionRequest, QuestionResult } from "../../ports/agent.ts";

/** Validates a question of a turn or a tool. */
export function checkAsk(given: QuestionRequest): { readonly about: Subject; readonly deadlineMs: number | undefined } {
  if (!isObject(given)) throw invalid("A question is an object with `text`.");
  const { text, options, only = false, data, deadlineMs, ...rest } = given;
  rejectUnknown(rest, "A question");
  if (typeof text !== "string" || text.trim() === "") throw invalid("A question has a `text`.");
  // A copy: `every` skips the holes of a list.
  const strings = options === undefined || (Array.isArray(options) && [...options].every(isString));
  if (!strings || typeof only !== "boolean")
    throw invalid("A question's `options` are strings, and `only` is a boolean.");
  if (only && (options ?? []).length === 0) throw invalid("A question with `only` needs `options` to choose from.");
  const about: Subject = {
    kind: "question",
    text: text.toWellFormed(),
    ...(options === undefined ? {} : { options: options.map((one) => one.toWellFormed()) }),
    ...(only ? { only } : {}),
    ...(data === undefined ? {} : { data: checkJson(data, "`data`") }),
  };
  if (utf8Bytes(JSON.stringify(about)) > QUESTION_BYTES_MAX) {
    throw invalid(`A question has at most ${QUESTION_BYTES_MAX} bytes.`);
  }
  return { about, deadlineMs: deadlineMs === undefined ? undefined : checkMs(deadlineMs, "deadlineMs", 2 ** 31) };
}

/** Validates whether an approval is required before a call begins, and its options. */
export function checkApproval(given: unknown): ApprovalOption {
  if (typeof given === "boolean") return given;
  if (!isObject(given)) throw invalid("An approval is true, false, or an object with `scope`, `note`, `deadlineMs`.");
  const { scope, note, deadlineMs, ...rest } = given;
  rejectUnknown(rest, "An approval");
  if (scope !== undefined && (typeof scope !== "string" || scope === "" || scope.length > NOTE_CHARS_MAX)) {
    throw invalid(`An approval's \`scope\` is a text of at most ${NOTE_CHARS_MAX} characters.`);
  }
  if (note !== undefined && typeof note !== "string") throw invalid("An approval's `note` is a text.");
  return {
    ...(scope === undefined ? {} : { scope: scope.toWellFormed() }),
    ...(note === undefined ? {} : { note: note.slice(0, NOTE_CHARS_MAX).toWellFormed() }),
    ...(deadlineMs === undefined ? {} : { deadlineMs: checkMs(deadlineMs, "deadlineMs", 2 ** 31) }),
  };
}

/** The ending of a question, as its owner receives it. */
export function askedOf(ending: QuestionOutcome): QuestionResult {
  // Only approvals end as allowed or denied, and the engine asks those itself.
  return ending.kind === "allowed" || ending.kind === "denied" ? { kind: "answered", value: ending.kind } : ending;
}
