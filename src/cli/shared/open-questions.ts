// What people are asked and have not answered yet: found by the beginning of its id, and shown as exactly what it is.

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

/** The one that is meant. Rejects with `not_found` if nobody asks it any more. */
export async function findQuestion(control: BelayControl, typed: string): Promise<OpenQuestion> {
  const id = await resolveId(control, typed, ["question"]);
  const found = (await openQuestions(control)).find((question) => question.id === id);
  if (found !== undefined) return found;
  throw new ControlError("not_found", `Nobody asks ${plainLine(id, 140)}, or not any more.`, {
    hint: "It may have been answered, or ended with what asked it. `belay approve` lists what is open.",
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
 * All that is approved, to the byte: the call's name and its input as JSON, in which whatever an eye would miss is
 * written out. What the model or a tool says about it stands apart, since nobody carries that out.
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
    // JSON has broken lines only where it is laid out; those inside of texts are written as \n.
    ...JSON.stringify(about.input, undefined, 2)
      .split("\n")
      .map((line) => `    ${visible(line)}`),
    `  digest  ${visible(about.digest)}`,
    ...(about.note === undefined ? [] : [`  note    ${visible(about.note)}`]),
    ...(about.scope === about.name ? [] : [`  scope   ${visible(about.scope)} (what --remember would cover)`]),
  ];
}
