// The part of the history checker that follows the questions of one live run: asked by live work, settled once, and
// never open longer than their owner is live.
//
// Invariants
// 1. Remembers the open questions and how many were asked, nothing else.
// 2. After a finding it continues with the state of the log, so that one mistake is reported once.
import type { Event, QuestionEvent } from "../model/event.ts";
import { type CallId, type QuestionId, questionId, type RunId, type Work } from "../model/ids.ts";
import type { QuestionOutcome, Subject } from "../model/question.ts";
import type { Report } from "./verify-inbox.ts";

type Of<T extends QuestionEvent["type"]> = Extract<QuestionEvent, { type: T }>;

interface Open {
  readonly owner: Work;
  readonly kind: Subject["kind"];
}

export class QuestionCheck {
  readonly #run: RunId;
  readonly #open = new Map<QuestionId, Open>();
  #asked = 0;
  /** Questions whose run or call was cancelled: the next events must withdraw them. */
  readonly #doomed = new Set<QuestionId>();

  constructor(run: RunId) {
    this.#run = run;
  }

  /** Called first for each event. */
  follows(event: Event, report: Report): void {
    if (this.#doomed.size === 0) return;
    if (event.type === "question.settled" && this.#doomed.delete(event.questionId)) {
      if (event.ending.kind !== "withdrawn") {
        report("G9", `${event.questionId} ended as ${event.ending.kind} after what it belongs to was cancelled.`);
      }
      return;
    }
    report("G9", `${[...this.#doomed].join(", ")} was not withdrawn at once with what it belongs to.`);
    for (const id of this.#doomed) this.#open.delete(id);
    this.#doomed.clear();
  }

  ask({ questionId: id, owner, about }: Of<"question.asked">, report: Report): void {
    const number = Number(id.slice(questionId(this.#run, 0).length - 1));
    if (!(number > this.#asked)) report("G17", `${id} has a number that ${this.#run} has used already.`);
    this.#asked = number;
    this.#open.set(id, { owner, kind: about.kind });
  }

  settle({ questionId: id, ending }: Of<"question.settled">, report: Report): void {
    const question = this.#open.get(id);
    if (question === undefined) report("G17", `${id} ended, but it was not open.`);
    else if (!FITTING[question.kind].has(ending.kind)) {
      report("G17", `${id} ended as ${ending.kind}, which does not answer it.`);
    }
    this.#open.delete(id);
  }

  /** A cancel of the run, or of one of its calls. */
  cancelled(owner?: CallId): void {
    for (const [id, question] of this.#open) {
      if (owner === undefined || question.owner === owner) this.#doomed.add(id);
    }
  }

  /** A call, a turn, or the run has ended, and so must its questions. */
  over(what: Work | RunId, report: Report): void {
    for (const [id, question] of this.#open) {
      if (question.owner !== what && what !== this.#run) continue;
      report("G9", `${id} is open, although ${what} is over.`);
      this.#open.delete(id);
      this.#doomed.delete(id);
    }
  }

  /** The run is parked or recovered: only approvals may stay open. */
  setDown(report: Report): void {
    for (const [id, question] of this.#open) {
      if (question.kind === "approval") continue;
      report("G25", `${id} is open, although its owner has gone.`);
      this.#open.delete(id);
    }
  }

  isWaiting(call: CallId): boolean {
    return [...this.#open.values()].some(({ owner, kind }) => owner === call && kind === "approval");
  }
}

const FITTING: Readonly<Record<Subject["kind"], ReadonlySet<QuestionOutcome["kind"]>>> = {
  approval: new Set(["allowed", "denied", "expired", "withdrawn"]),
  question: new Set(["answered", "expired", "withdrawn"]),
};
