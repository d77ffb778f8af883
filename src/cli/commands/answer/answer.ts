// `belay answer QUESTION VALUE`: answers a question that is not an approval.
import { ControlError } from "../../../core/errors.ts";
import type { Json } from "../../../core/model/prompt.ts";
import { withControl } from "../../shared/connect.ts";
import type { ConnectionOptions } from "../../shared/connection-options.ts";
import { answerExit, formatAnswerReceipt } from "../../shared/format/format-receipt.ts";
import { findQuestion } from "../../shared/open-questions.ts";
import { print } from "../../shared/terminal/terminal.ts";

export interface AnswerFlags extends ConnectionOptions {
  readonly asJson?: true;
  readonly by?: string;
  readonly json?: true;
}

export function runAnswer(typed: string, value: string, flags: AnswerFlags): Promise<number> {
  const answer: Json = flags.asJson ? parsed(value) : value;
  return withControl(flags, async ({ control }) => {
    const { id, about } = await findQuestion(control, typed);
    if (about.kind === "approval") {
      throw new ControlError("invalid", `${id} is an approval: it needs a yes or a no.`, {
        hint: `Answer it with: belay approve ${id}, or belay deny ${id}`,
      });
    }
    const receipt = await control.questions.answer(id, answer, flags.by === undefined ? {} : { by: flags.by });
    if (flags.json) print(JSON.stringify(receipt));
    else print(`${id}  ${formatAnswerReceipt(receipt)}`);
    return answerExit(receipt);
  });
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    throw new ControlError("invalid", "With --as-json the answer has to be JSON, and it is not.", {
      hint: `Leave out --as-json to answer with a text, or quote it for your shell: '{"colour":"green"}'`,
      cause: error,
    });
  }
}
