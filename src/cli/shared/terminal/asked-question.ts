// Formats a question for a user at a terminal, and parses the answer. Every command uses the same format.
//
// Invariants
// 1. Only Belay's own text begins a row. Text of a model, a tool or an agent is behind the mark of a margin.
// 2. An approval is given with a code that is new each time the question is asked. A plain yes does not approve.
import { styleText } from "node:util";
import type { RunId } from "../../../core/model/ids.ts";
import type { Question } from "../../../core/model/question.ts";
import { randomIds } from "../../../system/random-ids.ts";
import { systemClock } from "../../../system/system-clock.ts";
import { exactly } from "../open-questions.ts";
import type { Ask } from "./held-terminal.ts";
import { AGENT_MARK, inMargin } from "./margin.ts";

export type ParsedAnswer =
  | { readonly kind: "allow"; readonly always: boolean }
  | { readonly kind: "deny"; readonly note: string }
  | { readonly kind: "answer"; readonly value: string }
  | { readonly kind: "unclear"; readonly advice: string };

export interface FormattedQuestion extends Pick<Ask, "about" | "prompt" | "paste"> {
  readonly read: (typed: string) => ParsedAnswer;
}

interface AskedOptions {
  readonly code?: string;
  /** The width of the terminal, read each time the question is drawn. */
  readonly columns?: () => number | undefined;
}

const CODE_CHARS = 4;
/** Characters that are easily confused. */
const ALIKE = /[01lo]/g;

/** The end of a generated id is random; its beginning is the time. */
export const newCode = (): string =>
  randomIds(systemClock).make("run_").slice(-16).replaceAll(ALIKE, "").slice(-CODE_CHARS);

export function formatQuestion(
  question: Pick<Question, "id" | "about"> & { readonly runId: RunId },
  { code = newCode(), columns = () => process.stderr.columns }: AskedOptions = {},
): FormattedQuestion {
  const [id = "", ...lines] = exactly(question);
  const shown = (): string => inMargin(AGENT_MARK, lines.map((line) => line.slice(2)).join("\n"), columns());
  const bold = (text: string): string => styleText("bold", text, { stream: process.stderr });
  if (question.about.kind === "question") {
    const read = (typed: string): ParsedAnswer =>
      typed.trim() === "" ? EMPTY : { kind: "answer", value: typed.trim() };
    const about = (): string => `\n${bold(`Question ${id}`)}\n${shown()}`;
    return { about, prompt: bold("Answer: "), paste: "taken", read };
  }
  return {
    about: () => `\n${bold(`Approval ${id}`)}\n${shown()}May exactly this be carried out?\n`,
    prompt: bold(`Type ${code} to allow it (${code} always: in this session), or n [why]: `),
    paste: "dropped",
    read: (typed) => verdict(typed, code),
  };
}

const EMPTY: ParsedAnswer = { kind: "unclear", advice: "An answer has a text." };

function verdict(typed: string, code: string): ParsedAnswer {
  const [word = "", ...rest] = typed.trim().toLowerCase().split(/\s+/);
  if (/^(n|no)$/.test(word)) return { kind: "deny", note: typed.trim().split(/\s+/).slice(1).join(" ") };
  const always = rest.length === 1 && /^a(lways)?$/.test(rest[0] ?? "");
  if (word === code && (rest.length === 0 || always)) return { kind: "allow", always };
  return {
    kind: "unclear",
    advice: "Nothing was answered. The code stands beside the question, and is new each time.",
  };
}
