// Compares what was stopped with the requests that stopped it, by their notes: a cancel reaches what it names and what
// was sent before it, nothing that was sent later, and nothing is stopped that no caller stopped.
import type { CallId, RunId, SessionId } from "../../src/core/model/ids.ts";
import {
  type CallerHistory,
  type CallerRequest,
  describeRequest,
  type RequestOf,
  requestsOf,
} from "./caller-history.ts";
import type { Report } from "./finding.ts";
import { type LoggedCall, type LoggedRun, type LogIndex, noteOf } from "./log-index.ts";

export interface CoverageRules {
  /** The history has every request that can have changed the logs, each with its own note or signature. */
  readonly complete?: boolean;
}

export function checkCoverage(history: CallerHistory, index: LogIndex, rules: CoverageRules, report: Report): void {
  const check = new CoverageCheck(history, index, rules.complete === true, report);
  for (const run of index.runs.values()) check.run(run);
  for (const call of index.calls.values()) check.call(call);
  for (const request of requestsOf(history, "cancel-session")) check.order(request);
}

const notedIn = ({ params }: CallerRequest): string | undefined => ("note" in params ? params.note : undefined);

class CoverageCheck {
  readonly #index: LogIndex;
  readonly #complete: boolean;
  readonly #report: Report;
  readonly #byNote: ReadonlyMap<string | undefined, readonly CallerRequest[]>;
  /** The request that each run goes back to, if its caller knew its id. */
  readonly #prompts = new Map<RunId, RequestOf<"prompt">>();

  constructor(history: CallerHistory, index: LogIndex, complete: boolean, report: Report) {
    this.#index = index;
    this.#complete = complete;
    this.#report = report;
    this.#byNote = Map.groupBy(history.requests, notedIn);
    for (const prompt of requestsOf(history, "prompt")) {
      if (prompt.params.runId !== undefined) this.#prompts.set(prompt.params.runId, prompt);
    }
  }

  run(run: LoggedRun): void {
    if (run.outcome?.kind !== "cancelled") return;
    const { reason } = run.outcome;
    if (reason.kind === "superseded" && !this.#index.runs.has(reason.by)) {
      this.#report("refusedTraces", `${run.runId} was stopped for ${reason.by}, which was never accepted.`);
    }
    if (reason.kind !== "user") return;
    const requests = this.#requestsWith(reason.note);
    if (requests.length === 0) {
      if (this.#complete) this.#report("falseOutcomes", `${run.runId} was cancelled, and no caller requested that.`);
    } else if (!requests.some((request) => this.#covers(request, run))) {
      const names = requests.map(describeRequest).join(", ");
      this.#report("falseReceipts", `${names} reached ${run.runId}, which it does not cover.`, "G7");
    }
  }

  #repeats(id: RunId | undefined, runId: RunId): boolean {
    return id !== undefined && this.#index.aliases.get(id) === runId;
  }

  #requestsWith(note: string | undefined): readonly CallerRequest[] {
    return note === undefined ? [] : (this.#byNote.get(note) ?? []);
  }

  #covers(request: CallerRequest, { runId, label, sessionId }: LoggedRun): boolean {
    switch (request.name) {
      case "cancel-run":
      case "change":
        return request.params.runId === runId || this.#repeats(request.params.runId, runId);
      case "cancel-prompt":
        return request.params.label === label;
      case "cancel-session":
        return request.sessionId === sessionId && !isLater(this.#prompts.get(runId), request);
      default:
        return false;
    }
  }

  /** A call is cancelled by itself only if a request names it, or its approval; with the requested reminder. */
  call({ callId, cancel }: LoggedCall): void {
    const note = cancel === undefined ? undefined : noteOf(cancel.reason);
    const requests = this.#requestsWith(note);
    const aimed = requests.filter((request) => this.#callOf(request) === callId);
    if (note !== undefined && this.#complete && aimed.length === 0) {
      this.#report("falseReceipts", `${callId} was cancelled by a request that names something else.`);
    }
    for (const request of aimed) {
      const remind = request.name === "cancel-call" ? request.params.remind : true;
      if (remind === undefined || remind === cancel?.remind) continue;
      const wants = remind ? "wants" : "does not want";
      this.#report("falseReceipts", `${describeRequest(request)} ${wants} a reminder.`, "G9");
    }
  }

  #callOf(request: CallerRequest): CallId | undefined {
    if (request.name === "cancel-call") return request.params.callId;
    const question =
      request.name === "cancel-question" ? this.#index.questions.get(request.params.questionId) : undefined;
    return question?.about.kind === "approval" ? (question.owner as CallId) : undefined;
  }

  /** Within one life of a server, a cancel and the prompts of its session are recorded as they were sent. */
  order(cancel: RequestOf<"cancel-session">): void {
    const { note } = cancel.params;
    if (note === undefined || cancel.life === undefined) return;
    const at = this.#positionOf(note, cancel.sessionId);
    if (at === undefined) return;
    for (const [runId, prompt] of this.#prompts) {
      const run = this.#index.runs.get(runId);
      if (run === undefined || run.sessionId !== cancel.sessionId || prompt.life !== cancel.life) continue;
      if (prompt.sentAt < cancel.sentAt === run.seq < at) continue;
      const message = `${describeRequest(cancel)} and the prompt of ${runId} are recorded in the other order.`;
      this.#report("outOfOrder", message, "G7");
    }
  }

  #positionOf(note: string, sessionId: SessionId): number | undefined {
    const log = this.#index.logs.get(sessionId) ?? [];
    return log.find((event) => event.type === "session.cancel_requested" && noteOf(event.reason) === note)?.seq;
  }
}

/** Whether a prompt was certainly received after a cancel. */
function isLater(prompt: RequestOf<"prompt"> | undefined, cancel: CallerRequest): boolean {
  if (prompt === undefined) return false;
  if (prompt.life === undefined || cancel.life === undefined) return prompt.sentAt > cancel.answeredAt;
  return prompt.sentAt > cancel.sentAt;
}
