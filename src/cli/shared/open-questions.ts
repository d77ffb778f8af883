// Open questions and approvals: found by an id prefix, and shown exactly as they are.

import { ControlError } from "../../core/errors.ts";
import type { RunId, SessionId } from "../../core/model/ids.ts";
import type { Question } from "../../core/model/question.ts";
import type { BelayControl } from "../../ports/control.ts";
import { plainLine } from "./format/plain-text.ts";
import { type Style, table } from "./format/table.ts";
import { visibleText } from "./format/visible-text.ts";
import { resolveId } from "./id-prefix.ts";

const visible = (text: string): string => visibleText(text, "escaped");

export type OpenQuestion = Question & { readonly sessionId: SessionId; readonly runId: RunId };

export async function openQuestions(control: BelayControl): Promise<readonly OpenQuestion[]> {
  return (await control.live()).flatMap(({ sessionId, live }) =>
    live === undefined ? [] : live.questions.map((question) => ({ ...question, sessionId, runId: live.runId })),
  );
}

/** The open question with this id or prefix. Rejects with `not_found` if it is no longer open. */
export async function findQuestion(control: BelayControl, typed: string): Promise<OpenQuestion> {
  const id = await resolveId(control, typed, ["question"]);
  const found = (await openQuestions(control)).find((question) => question.id === id);
  if (found !== undefined) return found;
  throw new ControlError("not_found", `There is no open question ${plainLine(id, 140)}.`, {
    hint: "It may have been answered, or ended with the run that asked it. `belay approve` lists the open ones.",
  });
}

const COLUMNS = [
  { title: "ID" },
  { title: "KIND" },
  { title: "ABOUT", widthMin: 10 },
  { title: "SESSION", widthMin: 7 },
] as const;

export function questionLines(questions: readonly OpenQuestion[], style: Style): readonly string[] {
  const rows = questions.map(({ id, about, sessionId }) => [
    ...[id, about.kind, about.kind === "approval" ? `${about.name} ${JSON.stringify(about.input)}` : about.text],
    sessionId,
  ]);
  return table(COLUMNS, rows, style);
}

/**
 * Everything that is approved, to the byte: the call's name and its input as JSON, with invisible characters escaped.
 * The note of the model or a tool is on separate lines, since it is not part of what is carried out.
 */
export function exactly({ id, about, runId }: Pick<OpenQuestion, "id" | "about" | "runId">): readonly string[] {
  if (about.kind === "question") {
    const options = about.options?.map((option) => `    ${visible(option)}`) ?? [];
    return [
      `${id}  of ${runId}`,
      ...visibleText(about.text)
        .split("\n")
        .map((line) => `  ${line}`),
      ...(options.length === 0 ? [] : [`  ${about.only ? "One of" : "For example"}:`, ...options]),
    ];
  }
  return [
    `${id}  of ${runId}`,
    `  call    ${visible(JSON.stringify(about.name))}`,
    "  input",
    // Line breaks here are only those of the formatting: JSON writes those inside strings as \n.
    ...JSON.stringify(about.input, undefined, 2)
      .split("\n")
      .map((line) => `    ${visible(line)}`),
    `  digest  ${visible(about.digest)}`,
    ...(about.note === undefined ? [] : [`  note    ${visible(about.note)}`]),
    ...(about.scope === about.name ? [] : [`  scope   ${visible(about.scope)} (what --remember would cover)`]),
  ];
}
