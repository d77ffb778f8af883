// `belay approve` and `belay deny`: a yes or a no to a call, bound to the bytes that were shown.
import type { ApprovalOptions, BelayControl } from "../control.ts";
import { ControlError } from "../core/control-error.ts";
import type { AnswerReceipt } from "../core/question.ts";
import { confirm, isAttended } from "./confirm.ts";
import { withControl } from "./control-door.ts";
import { answerExit, sayAnswerReceipt } from "./control-words.ts";
import type { DoorOptions } from "./door-options.ts";
import { doorWords } from "./door-words.ts";
import { EXIT_FOUND, EXIT_OK } from "./exit-code.ts";
import { exactly, findQuestion, type OpenQuestion, openQuestions, questionLines } from "./open-questions.ts";
import { styleOf } from "./table.ts";
import { print } from "./terminal.ts";

export interface ApproveFlags extends DoorOptions {
  readonly note?: string;
  readonly by?: string;
  readonly remember?: true;
  readonly digest?: string;
  readonly yes?: true;
  readonly json?: true;
}

export type Verdict = "allow" | "deny";

/** Without an id: what is open. */
export function runApprove(verdict: Verdict, typed: string | undefined, flags: ApproveFlags): Promise<number> {
  return withControl(flags, async ({ control }) => {
    if (typed === undefined) return list(control, flags);
    const question = await findQuestion(control, typed);
    const digest = digestOf(question);
    // Shown on stderr where stdout is for a machine.
    for (const line of exactly(question)) flags.json ? process.stderr.write(`${line}\n`) : print(line);
    if (verdict === "allow" && !(await isMeant(question, flags))) return EXIT_FOUND;
    const receipt = await send(control, verdict, question, { ...flags, digest: flags.digest ?? digest });
    if (flags.json) print(JSON.stringify(receipt));
    else print(`${question.id}  ${sayAnswerReceipt(receipt)}`);
    return answerExit(receipt);
  });
}

async function list(control: BelayControl, flags: ApproveFlags): Promise<number> {
  const questions = await openQuestions(control);
  if (flags.json) print(JSON.stringify({ questions }));
  else if (questions.length === 0) print("Nobody is asked anything.");
  else for (const line of questionLines(questions, styleOf(process.stdout))) print(line);
  return EXIT_OK;
}

function digestOf({ id, about }: OpenQuestion): string {
  if (about.kind === "approval") return about.digest;
  throw new ControlError("invalid", `${id} is no approval: it wants an answer.`, {
    hint: `Answer it with: belay answer ${id} VALUE`,
  });
}

/** A yes is only taken from somebody who has seen what it is to: here and now, by its digest, or by saying so. */
async function isMeant({ id, about }: OpenQuestion, flags: ApproveFlags): Promise<boolean> {
  if (flags.yes || flags.digest !== undefined) return true;
  if (isAttended()) {
    if ((await confirm("May exactly this be carried out?")) === "yes") return true;
    process.stderr.write(`Nothing was answered; it still waits. To refuse it: belay deny ${id}${doorWords(flags)}\n`);
    return false;
  }
  const shown = about.kind === "approval" ? about.digest : "DIGEST";
  throw new ControlError("invalid", "Nobody is at a terminal to look at what would be approved.", {
    hint: `Look at it, and then say which bytes you mean: --digest ${shown}. Or, unseen: --yes.`,
  });
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
