// The logs of a store, so that a checker finds in them what a client spoke of.
import type { Outcome } from "../../src/core/cancel.ts";
import type { Event, Recorded } from "../../src/core/event.ts";
import type { CallId, ProcessId, QuestionId, RunId, Seq, SessionId } from "../../src/core/ids.ts";
import type { Ending } from "../../src/core/question.ts";
import { type Script, scriptOf } from "./script.ts";

export type Logs = ReadonlyMap<SessionId, readonly Recorded[]>;

export interface LoggedRun {
  readonly runId: RunId;
  readonly sessionId: SessionId;
  readonly seq: Seq;
  readonly script: Script | undefined;
  started: boolean;
  readonly outcomes: Outcome[];
}

export interface LoggedCall {
  readonly callId: CallId;
  readonly runId: RunId;
  readonly idempotent: boolean;
  readonly step: string | undefined;
  outcome: Outcome | undefined;
}

export class LogIndex {
  readonly logs: Logs;
  readonly runs = new Map<RunId, LoggedRun>();
  readonly labels = new Map<string, LoggedRun[]>();
  readonly calls = new Map<CallId, LoggedCall>();
  readonly processes = new Map<ProcessId, Outcome | undefined>();
  readonly questions = new Map<QuestionId, Ending | undefined>();

  constructor(logs: Logs) {
    this.logs = logs;
    for (const [sessionId, events] of logs) for (const event of events) this.#note(sessionId, event);
  }

  at(sessionId: SessionId, seq: Seq): Recorded | undefined {
    return this.logs.get(sessionId)?.find((event) => event.seq === seq);
  }

  has(sessionId: SessionId, fits: (event: Event) => boolean): boolean {
    return this.logs.get(sessionId)?.some(fits) === true;
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
      case "call.requested": {
        const { callId, runId, input } = event;
        const step = typeof input === "object" && input !== null && "step" in input ? String(input.step) : undefined;
        this.calls.set(callId, { callId, runId, step, idempotent: event.idempotent === true, outcome: undefined });
        return;
      }
      case "call.settled": {
        const call = this.calls.get(event.callId);
        if (call !== undefined) call.outcome = event.outcome;
        return;
      }
      case "process.requested":
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

  #accept(sessionId: SessionId, event: Extract<Recorded, { type: "run.accepted" }>): void {
    const { runId, seq, prompt } = event;
    const script = scriptOf(prompt.data);
    const run: LoggedRun = { runId, sessionId, seq, script, started: false, outcomes: [] };
    this.runs.set(runId, run);
    if (script !== undefined) this.labels.set(script.label, [...(this.labels.get(script.label) ?? []), run]);
  }

  #move(event: Extract<Recorded, { type: "run.started" | "run.settled" }>): void {
    const run = this.runs.get(event.runId);
    if (run === undefined) return;
    if (event.type === "run.started") run.started = true;
    else run.outcomes.push(event.outcome);
  }
}
