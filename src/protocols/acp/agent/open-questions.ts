// The questions that a client shows. Each is withdrawn when it was settled elsewhere or its work was stopped.
//
// Invariants
// 1. An unanswered question delays only the call that asked it, until that call is stopped.

import { messageOf } from "../../../core/errors.ts";
import type { Question } from "../../../core/model/question.ts";
import type { AnswersControl, BelayControl } from "../../../ports/control.ts";
import type { Choice, Peer, SessionLocation } from "./peer.ts";

export interface OpenQuestionsOptions {
  readonly control: BelayControl;
  readonly peer: Peer;
  readonly place: SessionLocation;
  /** The name recorded with an answer. */
  readonly by: string;
  readonly notice: (text: string) => void;
}

/** An explicit reason: by default each abort creates an error with a stack. */
const SETTLED = { name: "Settled", message: "The question was settled." } as const;

export class OpenQuestions {
  readonly #options: OpenQuestionsOptions;
  readonly #open = new Map<string, AbortController>();

  constructor(options: OpenQuestionsOptions) {
    this.#options = options;
  }

  ask(question: Question): void {
    if (this.#open.has(question.id)) return;
    const over = new AbortController();
    this.#open.set(question.id, over);
    void this.#put(question, over.signal);
  }

  settled(id: string): void {
    this.#open.get(id)?.abort(SETTLED); // @fault permission-not-withdrawn
    this.#open.delete(id);
  }

  close(): void {
    for (const id of [...this.#open.keys()]) this.settled(id);
  }

  async #put(question: Question, signal: AbortSignal): Promise<void> {
    const { peer, place, control, notice } = this.#options;
    try {
      const choice = await peer.ask(place, question, signal);
      if (choice !== undefined && !signal.aborted) await this.#answer(control.questions, question, choice);
    } catch (error) {
      // A client that failed to ask has not answered; another client still can.
      if (!signal.aborted) notice(`The question ${question.id} was not answered by the client: ${messageOf(error)}`);
    }
  }

  async #answer(answers: AnswersControl, { id, about }: Question, choice: Choice): Promise<void> {
    const { by, control } = this.#options;
    const digest = about.kind === "approval" ? { digest: about.digest } : {};
    switch (choice.kind) {
      case "allow":
        await answers.allow(id, {
          by,
          ...digest,
          ...(choice.remember === undefined ? {} : { remember: choice.remember }),
        });
        return;
      case "deny":
        await answers.deny(id, { by, ...digest });
        return;
      case "answer":
        await answers.answer(id, choice.value, { by });
        return;
      case "dismissed":
        // Counts as a denial: the operation must not continue, and no one else will answer.
        if (about.kind === "approval") await answers.deny(id, { by, note: "Dismissed without an answer.", ...digest });
        else await control.cancel(id, { reason: { kind: "user", by, note: "Dismissed without an answer." } });
    }
  }
}
