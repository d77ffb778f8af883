// Questions on their way: who waits for which answer, and until when. What counts is decided in the core.
import type { CancelReceipt, Outcome } from "../core/cancel.ts";
import type { Answer, Command, CommandOf } from "../core/command.ts";
import { ControlError } from "../core/control-error.ts";
import type { Recorded } from "../core/event.ts";
import { type QuestionId, runOf, type SessionId, type Work } from "../core/ids.ts";
import { QUESTION_MS } from "../core/limits.ts";
import type { About, AnswerReceipt, Ending, Reply } from "../core/question.ts";
import type { Clock, Store } from "../ports.ts";
import type { Commit } from "./commit.ts";
import type { Lanes } from "./lanes.ts";
import type { LiveLane } from "./live-lane.ts";
import { readAll } from "./replay.ts";
import type { Scope } from "./scope.ts";

interface Parts {
  readonly store: Store;
  readonly clock: Clock;
  readonly commit: () => Commit;
  readonly lanes: () => Lanes;
  /** With an idempotency key, the same request again gets the same answer. */
  readonly submit: <C extends Command>(lane: LiveLane, command: C, key: string | undefined) => Promise<Answer<C>>;
}

export interface Inquiry {
  readonly owner: Work;
  readonly about: About;
  readonly deadlineMs: number | undefined;
}

export class Questions {
  readonly #parts: Parts;
  readonly #waiting = new Map<QuestionId, (ending: Ending) => void>();
  /** Askers who have not heard yet what their question is called. */
  #unnamed = 0;
  /** Settled in the breath in which they were asked, before the asker knew their names. None without such an asker. */
  readonly #missed = new Map<QuestionId, Ending>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** How many of them are kept in mind: somebody waits for them, or may come to. */
  get size(): number {
    return this.#waiting.size + this.#missed.size;
  }

  /** Asks, and waits for the end of the question, but not longer than `scope`. */
  async ask(lane: LiveLane, scope: Scope, { owner, about, deadlineMs = QUESTION_MS }: Inquiry): Promise<Ending> {
    const command: CommandOf<"ask"> = { type: "ask", owner, about, deadlineMs };
    this.#unnamed += 1;
    let asked: Answer<CommandOf<"ask">>;
    let missed: Ending | undefined;
    try {
      asked = await scope.until(this.#parts.commit().submit(lane, command));
      if (asked.kind === "asked") missed = this.#missed.get(asked.questionId);
    } finally {
      this.#heardName();
    }
    // In the same tick in which it has heard the name: what ends from here on is told to whoever waits.
    if (asked.kind === "refused") throw new ControlError(asked.code, asked.message);
    if (asked.kind === "granted") return { kind: "allowed" };
    if (missed !== undefined) return missed;
    const id = asked.questionId;
    // @fault question-expires-early
    const takeBack = this.#parts.clock.after(deadlineMs, () => this.#expire(lane, id, deadlineMs));
    try {
      // @fault one-asker-at-a-time
      return await scope.until(new Promise<Ending>((resolve) => this.#waiting.set(id, resolve)));
    } finally {
      takeBack(); // @fault deadline-left-behind
      this.#waiting.delete(id);
    }
  }

  recorded(events: readonly Recorded[]): void {
    for (const event of events) {
      if (event.type !== "question.settled") continue;
      const resolve = this.#waiting.get(event.questionId); // @fault answer-to-the-wrong-asker
      if (resolve === undefined) this.#miss(event.questionId, event.ending);
      else resolve(event.ending);
    }
  }

  /** Records an answer, once. To one that comes too late the log says how the question had ended. */
  async answer(id: QuestionId, reply: Reply, options: { digest?: string; key?: string }): Promise<AnswerReceipt> {
    const session = await this.#sessionOf(id);
    if (session === undefined) return { kind: "unknown" };
    const { digest, key } = options;
    const command: CommandOf<"answer"> = {
      type: "answer",
      questionId: id,
      reply,
      ...(digest === undefined ? {} : { digest }),
    };
    const lane = this.#parts.lanes().get(session);
    const receipt = await this.#parts.submit(lane, command, key);
    if (receipt.kind !== "unknown") return receipt;
    const ending = await this.#ended(lane, id);
    return ending === undefined ? receipt : { kind: "settled", ending };
  }

  /** Takes a question back. */
  async cancel(command: CommandOf<"cancel-question">, key: string | undefined): Promise<CancelReceipt> {
    const session = await this.#sessionOf(command.questionId);
    if (session === undefined) return { kind: "unknown" };
    const lane = this.#parts.lanes().get(session);
    const receipt = await this.#parts.submit(lane, command, key);
    if (receipt.kind !== "unknown") return receipt;
    const ending = await this.#ended(lane, command.questionId);
    return ending === undefined ? receipt : { kind: "settled", outcome: outcomeOf(ending) };
  }

  async #sessionOf(id: QuestionId): Promise<SessionId | undefined> {
    return this.#parts.lanes().home(runOf(id)) ?? (await this.#parts.store.run(runOf(id)))?.session;
  }

  /** Read off the log: rare, and as long as the run. */
  async #ended(lane: LiveLane, id: QuestionId): Promise<Ending | undefined> {
    const row = await this.#parts.store.run(runOf(id));
    if (row === undefined) return undefined;
    for await (const event of readAll(this.#parts.store, lane.id, row.acceptedAt)) {
      if (event.type === "question.settled" && event.questionId === id) return event.ending;
      if (event.type === "run.settled" && event.runId === row.id) return undefined;
    }
    return undefined;
  }

  #expire(lane: LiveLane, questionId: QuestionId, limitMs: number): void {
    // Kept through a store's trouble, and refused only by a lane that another worker has taken over.
    this.#parts
      .commit()
      .submit(lane, { type: "expire", questionId, limitMs })
      .catch(() => {});
  }

  /** An asker has heard what its question is called, or that it will not. */
  #heardName(): void {
    this.#unnamed -= 1;
    if (this.#unnamed === 0) this.#missed.clear();
  }

  #miss(id: QuestionId, ending: Ending): void {
    if (this.#unnamed === 0) return;
    this.#missed.set(id, ending);
    const oldest = this.#missed.keys().next();
    if (this.#missed.size > MISSED_MAX && !oldest.done) this.#missed.delete(oldest.value);
  }
}

/** How many endings are kept for askers who have not heard yet what their question is called. */
const MISSED_MAX = 256;

function outcomeOf(ending: Ending): Outcome {
  if (ending.kind === "withdrawn") return { kind: "cancelled", reason: ending.reason };
  if (ending.kind === "expired") return { kind: "cancelled", reason: { kind: "timeout", limitMs: ending.limitMs } };
  return { kind: "completed" };
}
