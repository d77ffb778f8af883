// What a client that follows a session knows of it: what it can aim at. May be behind; then what it aims at is gone,
// which is what happens to people too.
import type { Recorded } from "../../src/core/model/event.ts";
import type { CallId, ProcessId, QuestionId, RunId } from "../../src/core/model/ids.ts";

export class Outlook {
  /** Runs that have been accepted and have neither begun nor ended. */
  readonly waiting = new Set<RunId>();
  readonly live = new Set<RunId>();
  readonly calls = new Set<CallId>();
  readonly processes = new Set<ProcessId>();
  readonly questions = new Set<QuestionId>();
  /** Runs that have ended, the last of them. */
  readonly settled: RunId[] = [];

  hear(event: Recorded): void {
    switch (event.type) {
      case "run.accepted":
        this.waiting.add(event.runId);
        return;
      case "run.started":
        this.waiting.delete(event.runId);
        this.live.add(event.runId);
        return;
      case "run.settled":
        this.waiting.delete(event.runId);
        this.live.delete(event.runId);
        this.settled.push(event.runId);
        if (this.settled.length > SETTLED_KEPT) this.settled.shift();
        return;
      case "call.requested":
        this.calls.add(event.callId);
        return;
      case "call.settled":
        this.calls.delete(event.callId);
        return;
      case "process.requested":
        this.processes.add(event.processId);
        return;
      case "process.settled":
        this.processes.delete(event.processId);
        return;
      case "question.asked":
        this.questions.add(event.questionId);
        return;
      case "question.settled":
        this.questions.delete(event.questionId);
        return;
      default:
        return;
    }
  }
}

/** Enough to aim at something that is over, now and then. */
const SETTLED_KEPT = 8;
