// A prompt of this connection that is not answered yet.
//
// Invariants
// 1. It is answered once: after the updates of its run include the end or, if updates have stopped, by its outcome.

import { ControlError } from "../../../core/errors.ts";
import type { Outcome } from "../../../core/model/cancel.ts";
import type { Usage } from "../../../core/model/event.ts";
import type { RunId } from "../../../core/model/ids.ts";
import type { RunControl } from "../../../ports/control.ts";
import { PROMPTS_OPEN_MAX } from "./limits.ts";

export interface PromptEnd {
  readonly runId: RunId;
  readonly outcome: Outcome;
  readonly usage: Usage | undefined;
}

export class OwnPrompt {
  readonly run: RunControl;
  /** Resolves with its run's id when the run begins, or with its end if it never did. Rejects if it was refused. */
  readonly begun: Promise<RunId | PromptEnd>;
  /** Resolves with its end. Rejects if it was refused, or if its end cannot be known here. */
  readonly ended: Promise<PromptEnd>;
  readonly #begun = Promise.withResolvers<RunId | PromptEnd>();
  readonly #ended = Promise.withResolvers<PromptEnd>();
  #runId: RunId | undefined;

  constructor(run: RunControl) {
    this.run = run;
    this.begun = this.#begun.promise;
    this.ended = this.#ended.promise;
    // Rejections reach the code that awaits these promises, and must not be unhandled otherwise.
    this.begun.catch(() => {});
    this.ended.catch(() => {});
    run.outcome.catch(() => {});
    run.accepted.then(
      ({ runId }) => {
        this.#runId = runId;
      },
      (error: unknown) => this.fail(error),
    );
  }

  /** Undefined until it is accepted. */
  get runId(): RunId | undefined {
    return this.#runId;
  }

  begin(runId: RunId): void {
    this.#begun.resolve(runId);
  }

  end(end: PromptEnd): void {
    this.#begun.resolve(end);
    this.#ended.resolve(end);
  }

  fail(error: unknown): void {
    this.#begun.reject(error);
    this.#ended.reject(error);
  }

  /** Answers with the run's own outcome, after updates have stopped. */
  async endByOutcome(): Promise<void> {
    try {
      const outcome = await this.run.outcome;
      const { runId } = await this.run.accepted;
      this.end({ runId, outcome, usage: undefined });
    } catch (error) {
      this.fail(error);
    }
  }
}

export const tooManyPrompts = (): ControlError =>
  new ControlError(
    "overloaded",
    `${PROMPTS_OPEN_MAX} prompts of this connection are waiting for their answers already.`,
    {
      hint: "Wait for some of them, or cancel them.",
    },
  );
