// What a run asks people, put to whoever sits at the terminal; without one it says who can answer instead.
//
// Invariants
// 1. One question at a time; one that is settled elsewhere is taken back from the screen.
// 2. An approval is given for exactly the bytes that were shown: their digest goes with it. It is given by a code that
//    was made for this question and shown with it, so that nothing that anybody was led to type before can be one.
// 3. Where nobody can ever answer, nobody waits: it is denied or taken back at once, and says why.

import { messageOf } from "../../../core/errors.ts";
import type { Recorded } from "../../../core/model/event.ts";
import type { QuestionId } from "../../../core/model/ids.ts";
import type { AnswerReceipt } from "../../../core/model/question.ts";
import type { BelayControl } from "../../../ports/control.ts";
import { type AskedAs, askedAs } from "../../shared/terminal/asked-question.ts";
import type { TerminalPrompt } from "../../shared/terminal/terminal-prompt.ts";
import type { RunView } from "./run-view.ts";

type AskedQuestion = Extract<Recorded, { type: "question.asked" }>;

export interface RunQuestionsOptions {
  readonly control: BelayControl;
  readonly view: RunView;
  /** Undefined: nobody sits here. */
  readonly terminalPrompt: TerminalPrompt | undefined;
  /** `here`: the run goes on in this very program, and nobody else can reach it. */
  readonly place: "server" | "here";
  /** What other commands need to find that place. */
  readonly options: string;
}

export class RunQuestions {
  readonly #options: RunQuestionsOptions;
  readonly #open = new Map<QuestionId, AbortController>();
  #last: Promise<void> = Promise.resolve();

  constructor(options: RunQuestionsOptions) {
    this.#options = options;
  }

  hear(event: Recorded): void {
    if (event.type === "question.asked") this.#asked(event);
    if (event.type !== "question.settled") return;
    this.#open.get(event.questionId)?.abort();
    this.#open.delete(event.questionId);
  }

  /** Nobody is asked any more. */
  close(): void {
    for (const open of this.#open.values()) open.abort();
    this.#open.clear();
  }

  #asked(event: AskedQuestion): void {
    const open = new AbortController();
    this.#open.set(event.questionId, open);
    const { view } = this.#options;
    this.#last = this.#last
      .then(() => (open.signal.aborted ? undefined : this.#put(event, open.signal)))
      .catch((error: unknown) => view.note(`${event.questionId} could not be answered: ${messageOf(error)}`));
  }

  async #put(event: AskedQuestion, signal: AbortSignal): Promise<void> {
    const { terminalPrompt: typist } = this.#options;
    await (typist === undefined ? this.#unattended(event) : this.#atTerminal(event, typist, signal));
  }

  /** Asks until there is an answer that fits, or the question is settled, or whoever was asked has gone. */
  async #atTerminal(event: AskedQuestion, terminalPrompt: TerminalPrompt, signal: AbortSignal): Promise<void> {
    const { view } = this.#options;
    while (!signal.aborted) {
      const asked = askedAs({ ...event, id: event.questionId });
      view.hold();
      const typed = await terminalPrompt.ask({ ...asked, signal });
      view.goOn();
      if (signal.aborted) return;
      if (typed === undefined) return this.#unattended(event);
      const receipt = await this.#answer(event, asked, typed);
      if (receipt === undefined) continue;
      if (receipt.kind === "refused") view.note(receipt.message);
      else {
        if (receipt.kind !== "recorded") view.note("Too late: it was answered elsewhere.");
        return;
      }
    }
  }

  /** Nobody sits here, or whoever did has gone: others can answer a server's, and nobody what goes on in here. */
  async #unattended(event: AskedQuestion): Promise<void> {
    const { place, view, options } = this.#options;
    if (place === "here") await this.#cannotAsk(event);
    else for (const line of howToAnswer(event, options)) view.note(line);
  }

  async #answer(event: AskedQuestion, asked: AskedAs, typed: string): Promise<AnswerReceipt | undefined> {
    const { questionId, about } = event;
    const { control, view } = this.#options;
    const { questions } = control;
    const meant = asked.read(typed);
    switch (meant.kind) {
      case "unclear":
        view.note(meant.advice);
        return undefined;
      case "answer":
        return questions.answer(questionId, meant.value);
      default: {
        const bound = about.kind === "approval" ? { digest: about.digest } : {};
        if (meant.kind === "allow") return questions.allow(questionId, { ...bound, ...remembered(meant.always) });
        return questions.deny(questionId, { ...bound, ...(meant.note === "" ? {} : { note: meant.note }) });
      }
    }
  }

  async #cannotAsk({ questionId, about }: AskedQuestion): Promise<void> {
    const { control, view } = this.#options;
    if (about.kind === "question") {
      view.note(`${questionId} asks: ${about.text}`);
      view.note("Nobody can answer here, so it is taken back.");
      await control.cancel(questionId, { reason: "nobody is there to answer" });
      return;
    }
    view.note(`${about.name} needs an approval, and nobody can give it here: denied. See belay run --help, --mode.`);
    await control.questions.deny(questionId, { note: "nobody is there to approve it" });
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
