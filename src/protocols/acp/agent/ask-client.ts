// Asks the client's user a question: as a form, as a choice, or otherwise as a notice.
import type { Question } from "../../../core/model/question.ts";
import { answerOf, type Form, formOf } from "./elicitation.ts";
import type { Choice } from "./peer.ts";
import { choiceOf, type Option, optionsOf, unaskable } from "./permission-options.ts";
import type { Update } from "./updates/update.ts";

/** The ways in which a client can show a question. */
export interface ClientMethods {
  /** Undefined if the client has no forms. */
  readonly form: ((form: Form) => Promise<Parameters<typeof answerOf>[0]>) | undefined;
  /** Resolves with the id of the chosen option, or undefined. */
  readonly choose: (options: Option[]) => Promise<string | undefined>;
  readonly send: (update: Update) => Promise<void>;
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
    await ways.send(unaskable(question));
    return undefined;
  }
  const chosen = await ways.choose(options);
  return chosen === undefined ? { kind: "dismissed" } : choiceOf(question, chosen);
}
