// What the logs say, kept apart from the engine: the reference against which everything that anybody is told is held.
// Fed with each append at the moment the store has applied it, so "is it durable yet?" has an answer at every step.
import type { CancelReason, Outcome } from "../src/core/model/cancel.ts";
import type { Event, Recorded, Usage } from "../src/core/model/event.ts";
import type { QuestionId, RunId, Seq, SessionId, Work } from "../src/core/model/ids.ts";
import type { Json } from "../src/core/model/prompt.ts";
import type { QuestionOutcome, Subject } from "../src/core/model/question.ts";
import { isCutOff } from "../src/core/read/transcript.ts";
import { ProcessBook } from "./process-book.ts";

export interface RunFacts {
  readonly id: RunId;
  readonly session: SessionId;
  readonly acceptedAt: Seq;
  readonly key: string | undefined;
  text: string;
  startedAt: Seq | undefined;
  cancel: { readonly at: Seq; readonly reason: CancelReason } | undefined;
  parked: boolean;
  settledAt: Seq | undefined;
  outcome: Outcome | undefined;
}

export interface WorkFacts {
  readonly id: Work;
  readonly runId: RunId;
  readonly name: string;
  /** Of a call: what was asked for, and whether it may be begun again. */
  readonly input: Json | undefined;
  readonly idempotent: boolean;
  /** How many turns of its run had come to an end of their own before it: turns asked again in one's place share it. */
  readonly place: number;
  cancel: { readonly at: Seq; readonly reason: CancelReason; readonly remind: boolean } | undefined;
  /** What was kept of a turn's text while it went on, and what it was known to cost by then. */
  extended: string;
  meter: Usage | undefined;
  settled: Settled | undefined;
}

export interface Settled {
  readonly at: Seq;
  /** Its run was set down at that moment, so that nothing of it was going on. */
  readonly setDown: boolean;
  readonly outcome: Outcome;
  readonly text?: string;
  readonly usage?: Usage;
  readonly begun?: false;
  readonly result?: Json;
  readonly changes?: readonly string[];
}

export interface QuestionFacts {
  readonly id: QuestionId;
  readonly session: SessionId;
  readonly runId: RunId;
  readonly owner: Work;
  readonly about: Subject;
  readonly deadlineMs: number | undefined;
  ending: QuestionOutcome | undefined;
}

export class Facts {
  readonly logs = new Map<SessionId, Recorded[]>();
  readonly runs = new Map<RunId, RunFacts>();
  readonly works = new Map<Work, WorkFacts>();
  readonly #turnsOver = new Map<RunId, number>();
  readonly questions = new Map<QuestionId, QuestionFacts>();
  /** What people have approved for a whole session. */
  readonly grants = new Map<SessionId, Set<string>>();
  readonly processes = new ProcessBook();
  readonly closed = new Map<SessionId, Seq>();
  /** Up to where retention has removed the log, each time it did. */
  readonly trims = new Map<SessionId, Seq[]>();
  /** In the order in which they were started, across sessions. */
  readonly starts: { readonly run: RunId; readonly session: SessionId }[] = [];

  log(session: SessionId): readonly Recorded[] {
    return this.logs.get(session) ?? NO_EVENTS;
  }

  head(session: SessionId): Seq {
    return this.log(session).length;
  }

  at(session: SessionId, seq: Seq): Recorded | undefined {
    return this.logs.get(session)?.[seq - 1];
  }

  /** Runs of a session that have no outcome, in order of acceptance. */
  open(session: SessionId): readonly RunFacts[] {
    const open: RunFacts[] = [];
    for (const run of this.runs.values()) if (run.session === session && run.outcome === undefined) open.push(run);
    return open;
  }

  live(session: SessionId): RunFacts | undefined {
    return this.open(session).find((run) => run.startedAt !== undefined);
  }

  /** Questions of a session, oldest first. */
  asked(session: SessionId): readonly QuestionFacts[] {
    return [...this.questions.values()].filter((question) => question.session === session);
  }

  /** The first of each other session that has nothing live. */
  waitingElsewhere(session: SessionId): readonly RunFacts[] {
    const found: RunFacts[] = [];
    for (const other of this.logs.keys()) {
      const [first, ...rest] = other === session ? [] : this.open(other);
      if (first !== undefined && [first, ...rest].every((run) => run.startedAt === undefined)) found.push(first);
    }
    return found;
  }

  /** The store has applied this batch. */
  applied(session: SessionId, first: Seq, events: readonly Event[], at: number): void {
    let log = this.logs.get(session);
    if (log === undefined) {
      log = [];
      this.logs.set(session, log);
    }
    events.forEach((event, index) => {
      log.push({ ...event, seq: first + index, at });
      this.#note(session, event, first + index);
    });
  }

  #note(session: SessionId, event: Event, seq: Seq): void {
    switch (event.type) {
      case "session.closed":
        this.closed.set(session, seq);
        return;
      case "run.accepted":
        this.#accepted(session, event, seq);
        return;
      case "turn.requested":
        this.#work({ id: event.turnId, runId: event.runId, name: "turn", input: undefined, idempotent: false });
        return;
      case "call.requested": {
        const { callId: id, runId, name, input, idempotent = false } = event;
        this.#work({ id, runId, name, input, idempotent });
        return;
      }
      case "turn.extended": {
        const work = this.works.get(event.turnId);
        if (work === undefined) return;
        work.extended += event.text;
        work.meter = event.usage ?? work.meter;
        return;
      }
      case "turn.settled":
        if (!isCutOff(event.outcome)) this.#turnsOver.set(event.runId, (this.#turnsOver.get(event.runId) ?? 0) + 1);
        this.#settled(event.turnId, { ...event, at: seq, setDown: false });
        return;
      case "call.settled":
        this.#settled(event.callId, { ...event, at: seq, setDown: this.runs.get(event.runId)?.parked === true });
        return;
      case "call.cancel_requested": {
        const work = this.works.get(event.callId);
        if (work !== undefined) work.cancel ??= { at: seq, reason: event.reason, remind: event.remind === true };
        return;
      }
      case "question.asked":
        this.#asked(session, event);
        return;
      case "question.settled":
        this.#answered(session, event);
        return;
      default:
        if ("runId" in event) this.#noteRun(event, seq);
    }
  }

  #noteRun(event: Extract<Event, { runId: RunId }>, seq: Seq): void {
    const run = this.runs.get(event.runId);
    if (run === undefined) return; // The history checker reports it.
    switch (event.type) {
      case "run.edited":
        run.text = event.prompt.text;
        return;
      case "run.started":
        run.startedAt = seq;
        this.starts.push({ run: run.id, session: run.session });
        return;
      case "run.cancel_requested":
        run.cancel ??= { at: seq, reason: event.reason };
        return;
      case "run.parked":
        run.parked = true;
        return;
      case "run.recovered":
        run.parked = false;
        return;
      case "run.settled":
        run.settledAt ??= seq;
        run.outcome ??= event.outcome;
        return;
      default:
        return;
    }
  }

  #accepted(session: SessionId, event: Extract<Event, { type: "run.accepted" }>, seq: Seq): void {
    if (this.runs.has(event.runId)) return;
    this.runs.set(event.runId, {
      id: event.runId,
      session,
      acceptedAt: seq,
      key: event.key,
      text: event.prompt.text,
      startedAt: undefined,
      cancel: undefined,
      parked: false,
      settledAt: undefined,
      outcome: undefined,
    });
  }

  #asked(session: SessionId, event: Extract<Event, { type: "question.asked" }>): void {
    const { questionId: id, runId, owner, about, deadlineMs } = event;
    if (!this.questions.has(id)) {
      this.questions.set(id, { id, session, runId, owner, about, deadlineMs, ending: undefined });
    }
  }

  #answered(session: SessionId, { questionId, ending }: Extract<Event, { type: "question.settled" }>): void {
    const question = this.questions.get(questionId);
    if (question === undefined) return;
    question.ending ??= ending;
    if (ending.kind !== "allowed" || ending.remember !== "session" || question.about.kind !== "approval") return;
    this.grants.set(session, new Set([...(this.grants.get(session) ?? []), question.about.scope]));
  }

  #work(work: Pick<WorkFacts, "id" | "runId" | "name" | "input" | "idempotent">): void {
    if (this.works.has(work.id)) return;
    const place = this.#turnsOver.get(work.runId) ?? 0;
    this.works.set(work.id, { ...work, place, cancel: undefined, extended: "", meter: undefined, settled: undefined });
  }

  #settled(id: Work, settled: Settled): void {
    const work = this.works.get(id);
    if (work !== undefined) work.settled ??= settled;
  }
}

const NO_EVENTS: readonly Recorded[] = [];
