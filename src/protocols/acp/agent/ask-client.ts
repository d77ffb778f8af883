// How a question is put to people, in either version: as a form, as a choice, or else as a notice.
import type { Question } from "../../../core/model/question.ts";
import { answerOf, type Form, formOf } from "./elicitation.ts";
import type { Choice } from "./peer.ts";
import { choiceOf, type Option, optionsOf, unaskable } from "./permission-options.ts";
import type { Update } from "./updates/update.ts";

/** What a client can do about it. */
export interface ClientMethods {
  /** Undefined: it has no forms. */
  readonly form: ((form: Form) => Promise<Parameters<typeof answerOf>[0]>) | undefined;
  /** The id of what was chosen. Undefined: nothing was. */
  readonly choose: (options: Option[]) => Promise<string | undefined>;
  readonly tell: (telling: Update) => Promise<void>;
}

export async function askClient(
  sessionId: string,
  question: Question,
  ways: ClientMethods,
): Promise<Choice | undefined> {
  const form = ways.form === undefined ? undefined : formOf(sessionId, question);
  if (ways.form !== undefined && form !== undefined) return answerOf(await ways.form(form));
  const options = [...optionsOf(question)];
  if (options.length === 0) {
    await ways.tell(unaskable(question));
    return undefined;
  }
  const chosen = await ways.choose(options);
  return chosen === undefined ? { kind: "dismissed" } : choiceOf(question, chosen);
}
