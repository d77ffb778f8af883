// Asks the questions and approvals of a run at the terminal; without a terminal it prints how to answer them.
//
// Invariants
// 1. One question at a time; a question that is answered elsewhere is removed from the screen.
// 2. An approval is given for exactly the bytes that were shown: their digest is sent with it. It needs a code that was
//    generated for this question and shown with it, so that keys typed before cannot approve it.
// 3. A question that no client can answer is denied or withdrawn at once, with a message.

import { messageOf } from "../../../core/errors.ts";
import type { Recorded } from "../../../core/model/event.ts";
import type { QuestionId } from "../../../core/model/ids.ts";
import type { AnswerReceipt } from "../../../core/model/question.ts";
import type { BelayControl } from "../../../ports/control.ts";
import { type FormattedQuestion, formatQuestion } from "../../shared/terminal/asked-question.ts";
import type { TerminalPrompt } from "../../shared/terminal/terminal-prompt.ts";
import type { RunView } from "./run-view.ts";

type AskedQuestion = Extract<Recorded, { type: "question.asked" }>;

export interface RunQuestionsOptions {
  readonly control: BelayControl;
  readonly view: RunView;
  /** Undefined: no user can be asked here. */
  readonly terminalPrompt: TerminalPrompt | undefined;
  /** `here`: the run is in this program, so no other client can answer. */
  readonly place: "server" | "here";
  /** The options with which other commands find the run. */
  readonly options: string;
}

export class RunQuestions {
  readonly #options: RunQuestionsOptions;
  readonly #open = new Map<QuestionId, AbortController>();
  #last: Promise<void> = Promise.resolve();

  constructor(options: RunQuestionsOptions) {
    this.#options = options;
  }

  handle(event: Recorded): void {
    if (event.type === "question.asked") this.#enqueue(event);
    if (event.type !== "question.settled") return;
    this.#open.get(event.questionId)?.abort();
    this.#open.delete(event.questionId);
  }

  /** Withdraws the open questions from the screen. */
  close(): void {
    for (const open of this.#open.values()) open.abort();
    this.#open.clear();
  }

  #enqueue(event: AskedQuestion): void {
    const open = new AbortController();
    this.#open.set(event.questionId, open);
    const { view } = this.#options;
    this.#last = this.#last
      .then(() => (open.signal.aborted ? undefined : this.#ask(event, open.signal)))
      .catch((error: unknown) => view.note(`${event.questionId} could not be answered: ${messageOf(error)}`));
  }

  async #ask(event: AskedQuestion, signal: AbortSignal): Promise<void> {
    const { terminalPrompt } = this.#options;
    await (terminalPrompt === undefined ? this.#unattended(event) : this.#atTerminal(event, terminalPrompt, signal));
  }

  /** Asks until there is a valid answer, the question is settled, or the terminal is closed. */
  async #atTerminal(event: AskedQuestion, terminalPrompt: TerminalPrompt, signal: AbortSignal): Promise<void> {
    const { view } = this.#options;
    while (!signal.aborted) {
      const question = formatQuestion({ ...event, id: event.questionId });
      view.hold();
      const typed = await terminalPrompt.ask({ ...question, signal });
      view.release();
      if (signal.aborted) return;
      if (typed === undefined) return this.#unattended(event);
      const receipt = await this.#answer(event, question, typed);
      if (receipt === undefined) continue;
      if (receipt.kind === "refused") view.note(receipt.message);
      else {
        if (receipt.kind !== "recorded") view.note("Too late: it was answered elsewhere.");
        return;
      }
    }
  }

  /** Without a user here: other clients can answer the question of a server, but not that of a run in this program. */
  async #unattended(event: AskedQuestion): Promise<void> {
    const { place, view, options } = this.#options;
    if (place === "here") await this.#cannotAsk(event);
    else for (const line of howToAnswer(event, options)) view.note(line);
  }

  async #answer(event: AskedQuestion, question: FormattedQuestion, typed: string): Promise<AnswerReceipt | undefined> {
    const { questionId, about } = event;
    const { control, view } = this.#options;
    const { questions } = control;
    const answer = question.read(typed);
    switch (answer.kind) {
      case "unclear":
        view.note(answer.advice);
        return undefined;
      case "answer":
        return questions.answer(questionId, answer.value);
      default: {
        const bound = about.kind === "approval" ? { digest: about.digest } : {};
        if (answer.kind === "allow") return questions.allow(questionId, { ...bound, ...remembered(answer.always) });
        return questions.deny(questionId, { ...bound, ...(answer.note === "" ? {} : { note: answer.note }) });
      }
    }
  }

  async #cannotAsk({ questionId, about }: AskedQuestion): Promise<void> {
    const { control, view } = this.#options;
    if (about.kind === "question") {
      view.note(`${questionId} asks: ${about.text}`);
      view.note("It cannot be answered here, so it is withdrawn.");
      await control.cancel(questionId, { reason: "no user is available to answer" });
      return;
    }
    view.note(`${about.name} needs an approval, which cannot be given here: denied. See belay run --help, --mode.`);
    await control.questions.deny(questionId, { note: "no user is available to approve it" });
  }
}

const remembered = (always: boolean): { readonly remember?: "session" } => (always ? { remember: "session" } : {});

function howToAnswer({ questionId, about }: AskedQuestion, options: string): readonly string[] {
  if (about.kind === "question") {
    return [`${questionId} asks: ${about.text}`, `It waits. Answer with: belay answer${options} ${questionId} VALUE`];
  }
  return [
    `${questionId} asks whether ${about.name} may be carried out.`,
    `It waits. Answer with: belay approve ${questionId}${options}, or: belay deny ${questionId}${options}`,
  ];
}
