// The options for an approval or a question, the same in both versions.
import type { Question } from "../../../core/model/question.ts";
import type { Choice, Origin } from "./peer.ts";
import { shownText } from "./updates/shown-text.ts";
import type { Update } from "./updates/update.ts";

export interface Option {
  readonly optionId: string;
  readonly name: string;
  readonly kind: "allow_once" | "allow_always" | "reject_once";
}

const APPROVAL: readonly Option[] = [
  { optionId: "allow", name: "Allow", kind: "allow_once" },
  { optionId: "allow-session", name: "Allow for this session", kind: "allow_always" },
  { optionId: "deny", name: "Deny", kind: "reject_once" },
];

/** Empty if the question cannot be answered by a choice. */
export function optionsOf({ about }: Question): readonly Option[] {
  if (about.kind === "approval") return APPROVAL;
  return (about.options ?? []).map((name, index) => ({ optionId: `option-${index}`, name, kind: "allow_once" }));
}

/** The choice for an option. An unknown option is not an approval. */
export function choiceOf({ about }: Question, optionId: string): Choice {
  if (about.kind === "approval") {
    if (optionId === "allow") return { kind: "allow" };
    return optionId === "allow-session" ? { kind: "allow", remember: "session" } : { kind: "deny" };
  }
  const value = about.options?.[Number(/^option-(\d+)$/.exec(optionId)?.[1] ?? Number.NaN)];
  return value === undefined ? { kind: "dismissed" } : { kind: "answer", value };
}

/** The question as one line. */
export function askedText({ about }: Question): string {
  if (about.kind === "question") return about.text;
  return about.note === undefined ? `Allow ${about.name}?` : `Allow ${about.name}? ${about.note}`;
}

/** The origin of an update that belongs to no run. */
export const NO_RUN: Origin = { when: "live", whose: "other" };

/** A notice for a question with a typed answer, on a client without forms. */
export const unaskable = (question: Question): Update => ({
  type: "notice",
  title: "The agent asks a question",
  text: `${shownText(askedText(question))}\nAnswer it with: belay answer ${question.id} "…"`,
});
