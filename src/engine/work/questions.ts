// Asks, answers, cancels and expires questions. The core decides which of these counts.

import { ControlError } from "../../core/errors.ts";
import { QUESTION_MS } from "../../core/limits.ts";
import type { CancelReceipt, Outcome } from "../../core/model/cancel.ts";
import type { Answer, CommandOf } from "../../core/model/command.ts";
import { type QuestionId, runOf, type SessionId, type Work } from "../../core/model/ids.ts";
import type { AnswerReceipt, QuestionOutcome, QuestionReply, Subject } from "../../core/model/question.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Store } from "../../ports/store.ts";
import type { Submit } from "../cancels.ts";
import type { Waiters } from "../ends/waiters.ts";
import type { Commit } from "../log/commit.ts";
import { readAll } from "../log/replay.ts";
import type { SessionRegistry } from "../log/session-registry.ts";
import type { SessionState } from "../log/session-state.ts";
import type { Scope } from "./scope.ts";

interface Parts {
  readonly store: Store;
  readonly clock: Clock;
  readonly commit: Commit;
  readonly lanes: SessionRegistry;
  readonly waiters: Waiters;
  /** With an idempotency key, a repeated request gets the same answer. */
  readonly submit: Submit;
}

export interface Inquiry {
  readonly owner: Work;
  readonly about: Subject;
  readonly deadlineMs: number | undefined;
}

export class Questions {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Asks, and waits for the end of the question, but not longer than `scope`. */
  async ask(
    lane: SessionState,
    scope: Scope,
    { owner, about, deadlineMs = QUESTION_MS }: Inquiry,
  ): Promise<QuestionOutcome> {
    const command: CommandOf<"ask"> = { type: "ask", owner, about, deadlineMs };
    const waiter = new Waiter(this.#parts.waiters);
    let cancelTimer: (() => void) | undefined;
    try {
      // Registered in the tick of the decision, so that an answer recorded together with the question is not missed.
      const submitted = this.#parts.commit.submit(lane, command, (answer) => waiter.decided(answer));
      const asked = await scope.until(submitted);
      if (asked.kind === "refused") throw new ControlError(asked.code, asked.message);
      if (asked.kind === "granted") return { kind: "allowed" };
      const id = asked.questionId;
      // @fault question-expires-early
      cancelTimer = this.#parts.clock.after(deadlineMs, () => this.#expire(lane, id, deadlineMs));
      return await scope.until(waiter.ending);
    } finally {
      cancelTimer?.(); // @fault deadline-left-behind
      waiter.leave();
    }
  }

  /** Records an answer, once. A late one gets the recorded ending from the log. */
  async answer(
    id: QuestionId,
    reply: QuestionReply,
    options: { digest?: string; key?: string },
  ): Promise<AnswerReceipt> {
    const session = await this.#sessionOf(id);
    if (session === undefined) return { kind: "unknown" };
    const { digest, key } = options;
    const command: CommandOf<"answer"> = {
      type: "answer",
      questionId: id,
      reply,
      ...(digest === undefined ? {} : { digest }),
    };
    const lane = this.#parts.lanes.get(session);
    const receipt = await this.#parts.submit(lane, command, { key });
    if (receipt.kind !== "unknown") return receipt;
    const ending = await this.#ended(lane, id);
    return ending === undefined ? receipt : { kind: "settled", ending };
  }

  /** Cancels a question; that of a live run in this tick, before any later request. */
  async cancel(command: CommandOf<"cancel-question">, key: string | undefined): Promise<CancelReceipt> {
    const { questionId } = command;
    const session = this.#parts.lanes.sessionOf(runOf(questionId)) ?? (await this.#sessionOf(questionId));
    if (session === undefined) return { kind: "unknown" };
    const lane = this.#parts.lanes.get(session);
    const receipt = await this.#parts.submit(lane, command, { key });
    if (receipt.kind !== "unknown") return receipt;
    const ending = await this.#ended(lane, command.questionId);
    return ending === undefined ? receipt : { kind: "settled", outcome: outcomeOf(ending) };
  }

  async #sessionOf(id: QuestionId): Promise<SessionId | undefined> {
    return this.#parts.lanes.sessionOf(runOf(id)) ?? (await this.#parts.store.run(runOf(id)))?.session;
  }

  /** Read from the log: this is rare, and takes as long as the run is long. */
  async #ended(lane: SessionState, id: QuestionId): Promise<QuestionOutcome | undefined> {
    const row = await this.#parts.store.run(runOf(id));
    if (row === undefined) return undefined;
    for await (const event of readAll(this.#parts.store, lane.id, row.acceptedAt)) {
      if (event.type === "question.settled" && event.questionId === id) return event.ending;
      if (event.type === "run.settled" && event.runId === row.id) return undefined;
    }
    return undefined;
  }

  #expire(lane: SessionState, questionId: QuestionId, limitMs: number): void {
    // Kept while the store fails, and refused only if another worker has taken over the lane.
    this.#parts.commit.submit(lane, { type: "expire", questionId, limitMs }).catch(ignore);
  }
}

/** Waits for the end of one question, by the id from the decision. */
class Waiter {
  readonly ending: Promise<QuestionOutcome>;
  readonly #waiters: Waiters;
  #resolve: (ending: QuestionOutcome) => void = ignore;
  #dispose: () => void = ignore;
  #left = false;

  constructor(waiters: Waiters) {
    this.#waiters = waiters;
    this.ending = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** May be called again with another id, if the question is decided again. */
  decided(answer: Answer<CommandOf<"ask">>): void {
    if (this.#left) return;
    this.#dispose();
    if (answer.kind !== "asked") return;
    this.#dispose = this.#waiters.wait(answer.questionId, (ending) => {
      if (ending !== undefined && ending !== "absent") this.#resolve(ending);
    });
  }

  leave(): void {
    this.#left = true;
    this.#dispose();
  }
}

function outcomeOf(ending: QuestionOutcome): Outcome {
  if (ending.kind === "withdrawn") return { kind: "cancelled", reason: ending.reason };
  if (ending.kind === "expired") return { kind: "cancelled", reason: { kind: "timeout", limitMs: ending.limitMs } };
  return { kind: "completed" };
}

const ignore = (): void => {};
