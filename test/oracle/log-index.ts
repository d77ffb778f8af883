// The logs of a store by run, call, process and question, so that a checker finds what a request was about, and what
// the log had of it at any position.
import { isDeepStrictEqual } from "node:util";
import type { CancelReason, Outcome } from "../../src/core/model/cancel.ts";
import type { Event, Recorded } from "../../src/core/model/event.ts";
import type { CallId, ProcessId, QuestionId, RunId, Seq, SessionId } from "../../src/core/model/ids.ts";
import type { QuestionOutcome, Subject } from "../../src/core/model/question.ts";
import type { ExpectedEvent } from "./caller-history.ts";

export type Logs = ReadonlyMap<SessionId, readonly Recorded[]>;

type EventOf<T extends Recorded["type"]> = Extract<Recorded, { readonly type: T }>;
export type AcceptedEvent = EventOf<"run.accepted">;

/** The label of the prompt that an acceptance records: the same as in the requests that sent it. */
export type LabelOf = (event: AcceptedEvent, sessionId: SessionId) => string | undefined;

/** The first recorded request to stop something. */
export interface LoggedCancel {
  readonly at: Seq;
  readonly reason: CancelReason;
  /** Of a call: whether the model is reminded of it. */
  readonly remind?: boolean;
}

export interface LoggedRun {
  readonly runId: RunId;
  readonly sessionId: SessionId;
  readonly seq: Seq;
  readonly accepted: AcceptedEvent;
  readonly label: string | undefined;
  started: boolean;
  startedAt: Seq | undefined;
  /** When it became a steer, if it was a queued run. */
  steeredAt: Seq | undefined;
  cancel: LoggedCancel | undefined;
  /** The first one; `verify` finds a second. */
  outcome: Outcome | undefined;
  settledAt: Seq | undefined;
}

export interface LoggedCall {
  readonly callId: CallId;
  readonly runId: RunId;
  readonly seq: Seq;
  readonly name: string;
  readonly idempotent: boolean;
  cancel: LoggedCancel | undefined;
  /** False: it ended without having begun. */
  begun: boolean;
  outcome: Outcome | undefined;
  settledAt: Seq | undefined;
}

export interface LoggedProcess {
  readonly processId: ProcessId;
  readonly sessionId: SessionId;
  readonly seq: Seq;
  readonly requested: EventOf<"process.requested">;
  /** When it was moved to the background, if it was started by a call. */
  detachedAt: Seq | undefined;
  cancel: LoggedCancel | undefined;
  outcome: Outcome | undefined;
  settledAt: Seq | undefined;
}

export interface LoggedQuestion extends Pick<EventOf<"question.asked">, "questionId" | "owner" | "deadlineMs"> {
  readonly sessionId: SessionId;
  readonly seq: Seq;
  readonly about: Subject;
  ending: QuestionOutcome | undefined;
  settledAt: Seq | undefined;
}

export class LogIndex {
  readonly logs: Logs;
  readonly runs = new Map<RunId, LoggedRun>();
  readonly labels = new Map<string, LoggedRun[]>();
  readonly calls = new Map<CallId, LoggedCall>();
  readonly processes = new Map<ProcessId, LoggedProcess>();
  readonly questions = new Map<QuestionId, LoggedQuestion>();
  readonly closed = new Map<SessionId, Seq>();
  /** Turns, calls and processes that the logs requested. */
  readonly works = new Set<string>();
  readonly #labelOf: LabelOf;

  /** Ids that callers had for prompts which only repeat an earlier one, with its run. */
  readonly aliases = new Map<RunId, RunId>();

  constructor(logs: Logs, labelOf: LabelOf) {
    this.logs = logs;
    this.#labelOf = labelOf;
    for (const [sessionId, events] of logs) for (const event of events) this.#note(sessionId, event);
  }

  at(sessionId: SessionId, seq: Seq): Recorded | undefined {
    const log = this.logs.get(sessionId);
    const there = log?.[seq - 1];
    return there?.seq === seq ? there : log?.find((event) => event.seq === seq);
  }

  /** How many events of this session are the expected one. */
  count(sessionId: SessionId, expected: ExpectedEvent): number {
    let count = 0;
    for (const event of this.logs.get(sessionId) ?? []) if (isExpected(event, expected)) count += 1;
    return count;
  }

  /** The recorded stops that end a process: its own, and those of the call and the run it belongs to. */
  cancelsOf({ cancel, requested }: LoggedProcess): readonly LoggedCancel[] {
    const call = this.calls.get(requested.owner as CallId);
    const run = call === undefined ? undefined : this.runs.get(call.runId);
    return [cancel, call?.cancel, run?.cancel].filter((one) => one !== undefined);
  }

  #note(sessionId: SessionId, event: Recorded): void {
    switch (event.type) {
      case "session.closed":
        this.closed.set(sessionId, event.seq);
        return;
      case "run.accepted":
        this.#accept(sessionId, event);
        return;
      case "run.started":
      case "run.steered":
      case "run.cancel_requested":
      case "run.settled":
        this.#noteRun(event);
        return;
      case "turn.requested":
        this.works.add(event.turnId);
        return;
      case "call.requested":
      case "call.cancel_requested":
      case "call.settled":
        this.#noteCall(event);
        return;
      case "process.requested":
      case "process.detached":
      case "process.cancel_requested":
      case "process.settled":
        this.#noteProcess(sessionId, event);
        return;
      case "question.asked": {
        const { questionId, owner, about, deadlineMs, seq } = event;
        const asked = { questionId, sessionId, seq, owner, about, ending: undefined, settledAt: undefined };
        this.questions.set(questionId, deadlineMs === undefined ? asked : { ...asked, deadlineMs });
        return;
      }
      case "question.settled": {
        const question = this.questions.get(event.questionId);
        if (question !== undefined) settle(question, { ending: event.ending }, event.seq);
        return;
      }
      default:
        return;
    }
  }

  #accept(sessionId: SessionId, accepted: AcceptedEvent): void {
    const { runId, seq } = accepted;
    const label = this.#labelOf(accepted, sessionId);
    const run: LoggedRun = {
      ...{ runId, sessionId, seq, accepted, label, started: false, startedAt: undefined, steeredAt: undefined },
      ...{ cancel: undefined, outcome: undefined, settledAt: undefined },
    };
    this.runs.set(runId, run);
    if (label === undefined) return;
    const labelled = this.labels.get(label);
    if (labelled === undefined) this.labels.set(label, [run]);
    else labelled.push(run);
  }

  #noteRun(event: EventOf<"run.started" | "run.steered" | "run.cancel_requested" | "run.settled">): void {
    const run = this.runs.get(event.runId);
    if (run === undefined) return;
    switch (event.type) {
      case "run.started":
        run.started = true;
        run.startedAt ??= event.seq;
        return;
      case "run.steered":
        run.steeredAt ??= event.seq;
        return;
      case "run.cancel_requested":
        run.cancel ??= { at: event.seq, reason: event.reason };
        return;
      case "run.settled":
        settle(run, { outcome: event.outcome }, event.seq);
    }
  }

  #noteCall(event: EventOf<"call.requested" | "call.cancel_requested" | "call.settled">): void {
    const { callId, runId, seq } = event;
    if (event.type === "call.requested") {
      this.works.add(callId);
      this.calls.set(callId, {
        ...{ callId, runId, seq, name: event.name, idempotent: event.idempotent === true },
        ...{ cancel: undefined, begun: true, outcome: undefined, settledAt: undefined },
      });
      return;
    }
    const call = this.calls.get(callId);
    if (call === undefined) return;
    if (event.begun === false) call.begun = false;
    if (event.type === "call.settled") settle(call, { outcome: event.outcome }, seq);
    else call.cancel ??= { at: seq, reason: event.reason, remind: event.remind === true };
  }

  #noteProcess(
    sessionId: SessionId,
    event: EventOf<"process.requested" | "process.detached" | "process.cancel_requested" | "process.settled">,
  ): void {
    const { processId, seq } = event;
    if (event.type === "process.requested") {
      this.works.add(processId);
      this.processes.set(processId, {
        ...{ processId, sessionId, seq, requested: event, detachedAt: undefined, cancel: undefined },
        ...{ outcome: undefined, settledAt: undefined },
      });
      return;
    }
    const process = this.processes.get(processId);
    if (process === undefined) return;
    if (event.type === "process.settled") settle(process, { outcome: event.outcome }, seq);
    else if (event.type === "process.detached") {
      process.detachedAt ??= seq;
      // Its call was over before it was dead: it is being stopped.
      if (event.dying !== undefined) process.cancel ??= { at: seq, reason: event.dying };
    } else process.cancel ??= { at: seq, reason: event.reason };
  }
}

/** The first end counts; `verify` finds a second. */
function settle<T extends { settledAt: Seq | undefined }>(one: T, end: Partial<T>, at: Seq): void {
  if (one.settledAt === undefined) Object.assign(one, end, { settledAt: at });
}

/** Whether something that is at this position of a log, if anywhere, is among its first `head` events. */
export const isBy = (at: Seq | undefined, head: Seq): at is Seq => at !== undefined && at <= head;

/** The outcome that the first `head` events of a log have. */
export const outcomeBy = (one: Pick<LoggedRun, "outcome" | "settledAt"> | undefined, head: Seq): Outcome | undefined =>
  isBy(one?.settledAt, head) ? one?.outcome : undefined;

/** The note of a reason that a user gave. */
export const noteOf = (reason: CancelReason): string | undefined => (reason.kind === "user" ? reason.note : undefined);

export const isExpected = (event: Event, { type, like }: ExpectedEvent): boolean =>
  event.type === type && contains(event, like);

/** Whether a value has all fields of another one, at every depth. */
function contains(value: unknown, like: unknown): boolean {
  if (typeof like !== "object" || like === null || Array.isArray(like)) return same(value, like);
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(like).every(([name, part]) => contains(Reflect.get(value, name), part));
}

/** Equal once both are written as JSON: a store keeps no field that is undefined. */
export function same(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  const [text, otherText] = [JSON.stringify(one), JSON.stringify(other)];
  if (text === otherText || text === undefined || otherText === undefined) return text === otherText;
  // Only the order of the fields may differ.
  return isDeepStrictEqual(JSON.parse(text), JSON.parse(otherText));
}

/** A value in words, for findings. */
export const print = (value: unknown): string => JSON.stringify(value) ?? "nothing";
