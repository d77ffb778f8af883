// `belay approve` and `belay deny`: approve or deny a call, bound to the bytes that were shown.

import { ControlError } from "../../../core/errors.ts";
import type { AnswerReceipt } from "../../../core/model/question.ts";
import type { ApprovalOptions, BelayControl } from "../../../ports/control.ts";
import { systemClock } from "../../../system/system-clock.ts";
import { withControl } from "../../shared/connect.ts";
import { connectionArguments } from "../../shared/connection-arguments.ts";
import type { ConnectionOptions } from "../../shared/connection-options.ts";
import { EXIT_FOUND, EXIT_OK } from "../../shared/exit-code.ts";
import { answerExit, formatAnswerReceipt } from "../../shared/format/format-receipt.ts";
import { styleOf } from "../../shared/format/table.ts";
import { exactly, findQuestion, type OpenQuestion, openQuestions, questionLines } from "../../shared/open-questions.ts";
import { formatQuestion } from "../../shared/terminal/asked-question.ts";
import { print } from "../../shared/terminal/terminal.ts";
import { atTerminal, isInteractive } from "../../shared/terminal/terminal-prompt.ts";

export interface ApproveFlags extends ConnectionOptions {
  readonly note?: string;
  readonly by?: string;
  readonly remember?: true;
  readonly digest?: string;
  readonly yes?: true;
  readonly json?: true;
}

export type Verdict = "allow" | "deny";

/** Answers an approval; without an id, lists the open questions. */
export function runApprove(verdict: Verdict, typed: string | undefined, flags: ApproveFlags): Promise<number> {
  return withControl(flags, async ({ control }) => {
    if (typed === undefined) return list(control, flags);
    const question = await findQuestion(control, typed);
    const digest = digestOf(question);
    const answer =
      verdict === "deny" || flags.yes || flags.digest !== undefined
        ? shown(question, flags)
        : await asked(question, flags);
    if (answer === undefined) {
      process.stderr.write(
        `Nothing was answered; it still waits. To refuse it: belay deny ${question.id}${connectionArguments(flags)}\n`,
      );
      return EXIT_FOUND;
    }
    const receipt = await send(control, verdict, question, { ...flags, ...answer, digest: flags.digest ?? digest });
    if (flags.json) print(JSON.stringify(receipt));
    else print(`${question.id}  ${formatAnswerReceipt(receipt)}`);
    return answerExit(receipt);
  });
}

async function list(control: BelayControl, flags: ApproveFlags): Promise<number> {
  const questions = await openQuestions(control);
  if (flags.json) print(JSON.stringify({ questions }));
  else if (questions.length === 0) print("No question is open.");
  else for (const line of questionLines(questions, styleOf(process.stdout))) print(line);
  return EXIT_OK;
}

function digestOf({ id, about }: OpenQuestion): string {
  if (about.kind === "approval") return about.digest;
  throw new ControlError("invalid", `${id} is not an approval: it needs an answer.`, {
    hint: `Answer it with: belay answer ${id} VALUE`,
  });
}

/** Options that the answer at the terminal adds to those of the command line. */
type Added = Pick<ApproveFlags, "remember">;

/** Prints the question: on stderr with --json. */
function shown(question: OpenQuestion, flags: ApproveFlags): Added {
  for (const line of exactly(question)) flags.json ? process.stderr.write(`${line}\n`) : print(line);
  return {};
}

/** Shows the question at the terminal and asks for an answer. Undefined: it was not approved. */
async function asked(question: OpenQuestion, flags: ApproveFlags): Promise<Added | undefined> {
  if (!isInteractive()) {
    shown(question, flags);
    const digest = question.about.kind === "approval" ? question.about.digest : "DIGEST";
    throw new ControlError("invalid", "The question cannot be asked: this is not a terminal.", {
      hint: `Read it above, then approve exactly these bytes: --digest ${digest}. Or approve unseen: --yes.`,
    });
  }
  const formatted = formatQuestion(question);
  const terminalPrompt = atTerminal(systemClock);
  const left = new AbortController();
  const leave = (): void => left.abort();
  process.once("SIGINT", leave);
  const typed = await terminalPrompt.ask({ ...formatted, signal: left.signal });
  process.removeListener("SIGINT", leave);
  terminalPrompt.release();
  const answer = typed === undefined ? undefined : formatted.read(typed);
  return answer?.kind === "allow" ? (answer.always ? { remember: true } : {}) : undefined;
}

function send(
  { questions }: BelayControl,
  verdict: Verdict,
  { id }: OpenQuestion,
  { note, by, digest, remember }: ApproveFlags,
): Promise<AnswerReceipt> {
  const options: ApprovalOptions = {
    ...(note === undefined ? {} : { note }),
    ...(by === undefined ? {} : { by }),
    ...(digest === undefined ? {} : { digest }),
  };
  if (verdict === "deny") return questions.deny(id, options);
  return questions.allow(id, { ...options, ...(remember ? { remember: "session" } : {}) });
}
