// The logs of a store by run, call, process and question, so that a checker finds what a request was about.
import { isDeepStrictEqual } from "node:util";
import type { Outcome } from "../../src/core/cancel.ts";
import type { Event, Recorded } from "../../src/core/event.ts";
import type { CallId, ProcessId, QuestionId, RunId, Seq, SessionId } from "../../src/core/ids.ts";
import type { Ending } from "../../src/core/question.ts";
import type { ExpectedEvent } from "./caller-history.ts";

export type Logs = ReadonlyMap<SessionId, readonly Recorded[]>;

export type AcceptedEvent = Extract<Recorded, { readonly type: "run.accepted" }>;

/** The label of the prompt that an acceptance records: the same as in the requests that sent it. */
export type LabelOf = (event: AcceptedEvent, sessionId: SessionId) => string | undefined;

export interface LoggedRun {
  readonly runId: RunId;
  readonly sessionId: SessionId;
  readonly seq: Seq;
  readonly accepted: AcceptedEvent;
  readonly label: string | undefined;
  started: boolean;
  /** The first one; `verify` finds a second. */
  outcome: Outcome | undefined;
}

export interface LoggedCall {
  readonly callId: CallId;
  readonly runId: RunId;
  readonly idempotent: boolean;
  outcome: Outcome | undefined;
}

export class LogIndex {
  readonly logs: Logs;
  readonly runs = new Map<RunId, LoggedRun>();
  readonly labels = new Map<string, LoggedRun[]>();
  readonly calls = new Map<CallId, LoggedCall>();
  readonly processes = new Map<ProcessId, Outcome | undefined>();
  readonly questions = new Map<QuestionId, Ending | undefined>();
  /** Turns, calls and processes that the logs requested. */
  readonly works = new Set<string>();
  readonly #labelOf: LabelOf;

  constructor(logs: Logs, labelOf: LabelOf) {
    this.logs = logs;
    this.#labelOf = labelOf;
    for (const [sessionId, events] of logs) for (const event of events) this.#note(sessionId, event);
  }

  at(sessionId: SessionId, seq: Seq): Recorded | undefined {
    return this.logs.get(sessionId)?.find((event) => event.seq === seq);
  }

  /** How many events of this session are the expected one. */
  count(sessionId: SessionId, expected: ExpectedEvent): number {
    return (this.logs.get(sessionId) ?? []).filter((event) => isExpected(event, expected)).length;
  }

  #note(sessionId: SessionId, event: Recorded): void {
    switch (event.type) {
      case "run.accepted":
        this.#accept(sessionId, event);
        return;
      case "run.started":
      case "run.settled":
        this.#move(event);
        return;
      case "turn.requested":
        this.works.add(event.turnId);
        return;
      case "call.requested": {
        const { callId, runId } = event;
        this.works.add(callId);
        this.calls.set(callId, { callId, runId, idempotent: event.idempotent === true, outcome: undefined });
        return;
      }
      case "call.settled": {
        const call = this.calls.get(event.callId);
        if (call !== undefined) call.outcome = event.outcome;
        return;
      }
      case "process.requested":
        this.works.add(event.processId);
        this.processes.set(event.processId, undefined);
        return;
      case "process.settled":
        this.processes.set(event.processId, event.outcome);
        return;
      case "question.asked":
        this.questions.set(event.questionId, undefined);
        return;
      case "question.settled":
        this.questions.set(event.questionId, event.ending);
        return;
      default:
        return;
    }
  }

  #accept(sessionId: SessionId, accepted: AcceptedEvent): void {
    const { runId, seq } = accepted;
    const label = this.#labelOf(accepted, sessionId);
    const run: LoggedRun = { runId, sessionId, seq, accepted, label, started: false, outcome: undefined };
    this.runs.set(runId, run);
    if (label !== undefined) this.labels.set(label, [...(this.labels.get(label) ?? []), run]);
  }

  #move(event: Extract<Recorded, { type: "run.started" | "run.settled" }>): void {
    const run = this.runs.get(event.runId);
    if (run === undefined) return;
    if (event.type === "run.started") run.started = true;
    else run.outcome ??= event.outcome;
  }
}

export const isExpected = (event: Event, { type, like }: ExpectedEvent): boolean =>
  event.type === type && contains(event, like);

/** Whether a value has all fields of another one, at every depth. */
function contains(value: unknown, like: unknown): boolean {
  if (typeof like !== "object" || like === null || Array.isArray(like)) return same(value, like);
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(like).every(([name, part]) => contains(Reflect.get(value, name), part));
}

/** Equal once both are written as JSON: a store keeps no field that is undefined. */
export const same = (one: unknown, other: unknown): boolean => isDeepStrictEqual(plain(one), plain(other));

const plain = (value: unknown): unknown => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));

/** A value in words, for findings. */
export const print = (value: unknown): string => JSON.stringify(value) ?? "nothing";
