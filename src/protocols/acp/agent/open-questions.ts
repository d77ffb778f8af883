// The questions a client has on its screen. Each is taken back when it was settled elsewhere, or stopped.
//
// Invariants
// 1. Nothing waits for a client: whoever never answers holds up the call that asked, until it is stopped, and no more.

import { messageOf } from "../../../core/errors.ts";
import type { Question } from "../../../core/model/question.ts";
import type { AnswersControl, BelayControl } from "../../../ports/control.ts";
import type { Choice, Peer, SessionLocation } from "./peer.ts";

export interface OpenQuestionsOptions {
  readonly control: BelayControl;
  readonly peer: Peer;
  readonly place: SessionLocation;
  /** Who answers. */
  readonly by: string;
  readonly notice: (text: string) => void;
}

/** Without one of our own, each abort makes an error with a stack, for nobody. */
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
      // A client that fails to ask has not answered: somebody else still can.
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
        // The operation must not go on, and nobody is left who would say so.
        if (about.kind === "approval") await answers.deny(id, { by, note: "Dismissed without an answer.", ...digest });
        else await control.cancel(id, { reason: { kind: "user", by, note: "Dismissed without an answer." } });
    }
  }
}
