// Compares the receipts of cancels with the logs: what is stopping was stopped, what was withdrawn never began, and
// what had settled had settled like that.
import type { Waited } from "../../src/control.ts";
import type { CancelReceipt, Outcome } from "../../src/core/cancel.ts";
import type { Event } from "../../src/core/event.ts";
import { type CallId, type ProcessId, type RunId, runOf, type SessionId } from "../../src/core/ids.ts";
import { type CallerHistory, type CallerRequest, describeRequest, type RequestOf } from "./caller-history.ts";
import type { Report } from "./finding.ts";
import { type LogIndex, print, same } from "./log-index.ts";

type Receipt = CancelReceipt & Waited;
type CancelName = "cancel-run" | "cancel-prompt" | "cancel-session" | "cancel-call" | "cancel-process";
type CancelRequest = Extract<CallerRequest, { readonly name: CancelName }>;

export interface CancelRules {
  /** The store fails in this history: then a stop that could not be recorded is refused. */
  readonly storeFails: boolean;
}

export function checkCancels(history: CallerHistory, index: LogIndex, rules: CancelRules, report: Report): void {
  const check = new CancelCheck(history, index, rules, report);
  for (const request of history.requests) if (isCancel(request)) check.note(request);
}

const isCancel = (request: CallerRequest): request is CancelRequest => request.name.startsWith("cancel-");

interface Stopped {
  readonly sessionId: SessionId;
  readonly receipt: Receipt;
  readonly outcome: Outcome | undefined;
  /** Whether this event records the stop. */
  readonly isStop: (event: Event) => boolean;
}

class CancelCheck {
  readonly #history: CallerHistory;
  readonly #index: LogIndex;
  readonly #rules: CancelRules;
  readonly #report: Report;

  constructor(history: CallerHistory, index: LogIndex, rules: CancelRules, report: Report) {
    this.#history = history;
    this.#index = index;
    this.#rules = rules;
    this.#report = report;
  }

  note(request: CancelRequest): void {
    if (request.answer.kind === "refused") this.#refused(request, request.answer);
    if (request.answer.kind !== "returned") return;
    const { sessionId } = request;
    switch (request.name) {
      case "cancel-run":
        this.#run(sessionId, request.params.runId, request.answer.value);
        return;
      case "cancel-prompt":
        this.#prompt(request, request.answer.value);
        return;
      case "cancel-session": {
        const { value } = request.answer;
        for (const { runId, receipt } of value.runs) this.#run(sessionId, runId, receipt);
        if (!("processes" in value)) return;
        for (const { processId, receipt } of value.processes ?? []) this.#process(sessionId, processId, receipt);
        return;
      }
      case "cancel-call":
        this.#call(sessionId, request.params.callId, request.answer.value);
        return;
      case "cancel-process":
        this.#process(sessionId, request.params.processId, request.answer.value);
        return;
    }
  }

  /** A stop is refused only if the store fails; and one that was carried out all the same is recorded in the end. */
  #refused(request: CancelRequest, { code, carriedOut }: { readonly code: string; readonly carriedOut?: true }): void {
    if (!this.#rules.storeFails) {
      this.#false(`${describeRequest(request)} was refused: ${code}.`);
      return;
    }
    if (carriedOut !== true || request.name !== "cancel-run") return;
    const { runId } = request.params;
    const run = this.#index.runs.get(runId);
    if (run === undefined || run.outcome?.kind === "cancelled") return;
    this.#report("falseReceipts", `The stop of ${runId} was carried out; it ended as ${print(run.outcome)}.`, "G28");
  }

  #run(sessionId: SessionId, runId: RunId, receipt: Receipt): void {
    const run = this.#index.runs.get(runId);
    const outcome = run?.outcome;
    this.#stopped(runId, { sessionId, receipt, outcome, isStop: (event) => isCancelOf(event, runId) });
    if (receipt.kind === "unknown" && run !== undefined) {
      this.#false(`${runId} is in the log, and was reported as unknown.`);
    }
    if (receipt.kind === "withdrawn" && run?.started === true) {
      this.#false(`${runId} was reported as withdrawn, and it started.`);
    }
    const stops = receipt.kind === "withdrawn" || receipt.kind === "stopping";
    if (stops && outcome?.kind !== "cancelled") {
      this.#false(`${runId} was reported as ${receipt.kind}, and ended as ${print(outcome)}.`);
    }
  }

  #call(sessionId: SessionId, callId: CallId, receipt: Receipt): void {
    const call = this.#index.calls.get(callId);
    const runId = runOf(callId);
    const isStop = (event: Event): boolean =>
      isCancelOf(event, runId) || (event.type === "call.cancel_requested" && event.callId === callId);
    this.#stopped(callId, { sessionId, receipt, outcome: call?.outcome, isStop });
    if (receipt.kind === "unknown" && call !== undefined) {
      this.#false(`${callId} is in the log, and was reported as unknown.`);
    }
  }

  #process(sessionId: SessionId, processId: ProcessId, receipt: Receipt): void {
    const outcome = this.#index.processes.get(processId);
    const isStop = (event: Event): boolean =>
      event.type === "process.cancel_requested" ? event.processId === processId : event.type.endsWith("_requested");
    this.#stopped(processId, { sessionId, receipt, outcome, isStop });
    if (receipt.kind === "unknown" && this.#index.processes.has(processId)) {
      this.#false(`${processId} is in the log, and was reported as unknown.`);
    }
  }

  /** What holds for everything that can be stopped. */
  #stopped(id: string, { sessionId, receipt, outcome, isStop }: Stopped): void {
    if (receipt.kind === "settled" && !same(receipt.outcome, outcome)) {
      this.#false(`${id} was reported as settled with ${print(receipt.outcome)}; the log has ${print(outcome)}.`);
    }
    const { ended } = receipt;
    if (ended?.kind === "settled" && !same(ended.outcome, outcome)) {
      this.#false(`The wait for ${id} returned ${print(ended.outcome)}; the log has ${print(outcome)}.`);
    }
    if (receipt.kind !== "stopping") return;
    const event = this.#index.at(sessionId, receipt.since);
    if (event === undefined || !isStop(event)) {
      this.#false(`${id} is stopping since ${receipt.since}, where the log has ${event?.type ?? "nothing"}.`);
    }
  }

  #prompt(request: RequestOf<"cancel-prompt">, receipt: Receipt): void {
    const { label } = request.params;
    const run = this.#index.labels.get(label)?.[0];
    if (receipt.kind !== "unknown") {
      if (run === undefined) this.#report("lost", `${label} was reported as ${receipt.kind}, and is not in the log.`);
      else this.#run(request.sessionId, run.runId, receipt);
      return;
    }
    const known = this.#history.requests.some(
      ({ name, params, answer, answeredAt }) =>
        name === "prompt" && params.label === label && answer.kind === "returned" && answeredAt < request.sentAt,
    );
    if (known) this.#false(`${label} had been accepted, and its cancel reported it as unknown.`);
  }

  #false(message: string): void {
    this.#report("falseReceipts", message);
  }
}

/** Whether this requests the end of a run: by its id, or together with all runs of its session. */
function isCancelOf(event: Event, runId: RunId): boolean {
  if (event.type === "run.cancel_requested") return event.runId === runId;
  return event.type === "session.cancel_requested" && event.covers.includes(runId);
}
