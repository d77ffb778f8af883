// Compares the receipts of cancels with the logs: what is stopping was stopped, what was withdrawn never began, what
// had settled had settled like that, and a cancel of a session covers what it found.

import type { CancelReceipt, SessionReceipt } from "../../src/core/model/cancel.ts";
import { type CallId, type ProcessId, type RunId, runOf, type Seq } from "../../src/core/model/ids.ts";
import type { AwaitedOutcome } from "../../src/ports/control.ts";
import { type CallerHistory, type CallerRequest, describeRequest, headOf, type RequestOf } from "./caller-history.ts";
import type { Report } from "./finding.ts";
import {
  isBy,
  type LoggedCancel,
  type LoggedProcess,
  type LoggedRun,
  type LogIndex,
  noteOf,
  outcomeBy,
  print,
  same,
} from "./log-index.ts";

type Receipt = CancelReceipt & AwaitedOutcome;
type CancelName =
  | ("cancel-run" | "cancel-prompt" | "cancel-session" | "cancel-call")
  | ("cancel-process" | "cancel-question");
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

/** What the log has of something that can be stopped. */
interface Stoppable extends Pick<LoggedRun, "outcome" | "settledAt"> {
  readonly id: string;
  /** Where it begins, if it is in the log. */
  readonly seq: Seq | undefined;
  /** The recorded stops that reach it. */
  readonly cancels: readonly (LoggedCancel | undefined)[];
}

const meant = ({ aliases }: LogIndex, runId: RunId, { kind }: CancelReceipt): RunId =>
  kind === "unknown" ? runId : (aliases.get(runId) ?? runId);

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
    switch (request.name) {
      case "cancel-run":
        this.#run(request, meant(this.#index, request.params.runId, request.answer.value), request.answer.value);
        return;
      case "cancel-prompt":
        this.#prompt(request, request.answer.value);
        return;
      case "cancel-session":
        this.#session(request, request.answer.value);
        return;
      case "cancel-call":
        this.#call(request, request.params.callId, request.answer.value);
        return;
      case "cancel-process":
        this.#process(request, request.params.processId, request.answer.value);
        return;
      case "cancel-question": // Checked with the replies.
        return;
    }
  }

  /** A stop is refused only if the store fails; and one that was carried out all the same is recorded in the end. */
  #refused(request: CancelRequest, { code, carriedOut }: Extract<CancelRequest["answer"], { kind: "refused" }>): void {
    if (!this.#rules.storeFails) {
      this.#false(`${describeRequest(request)} was refused: ${code}.`);
      return;
    }
    const target = request.name === "cancel-run" ? [request.params.runId] : [];
    for (const runId of carriedOut === true ? target : (carriedOut ?? [])) {
      const { outcome } = this.#index.runs.get(runId) ?? NOT_LOGGED;
      if (outcome?.kind === "cancelled" || !this.#index.runs.has(runId)) continue;
      this.#report("falseReceipts", `The stop of ${runId} was carried out; it ended as ${print(outcome)}.`, "G28");
    }
  }

  #session(request: RequestOf<"cancel-session">, receipt: SessionReceipt): void {
    const { sessionId, params, moment } = request;
    if (receipt.kind === "unknown" && moment !== undefined && moment.sentHead > 0) {
      this.#false(`${sessionId} was reported as unknown.`);
      return;
    }
    const processes = "processes" in receipt ? (receipt.processes ?? []) : [];
    for (const { runId, receipt: one } of receipt.runs) this.#run(request, runId, one);
    for (const { processId, receipt: one } of processes) this.#coveredProcess(request, processId, one);
    if (params.keep === true && processes.length > 0) {
      this.#report("falseReceipts", `${describeRequest(request)} stopped what it was to keep.`, "G9");
    }
    const covered = new Set<string>([
      ...receipt.runs.map(({ runId }) => runId),
      ...processes.map(({ processId }) => processId),
    ]);
    for (const id of this.#found(request)) {
      if (covered.has(id)) continue;
      this.#report("falseReceipts", `${describeRequest(request)} does not cover ${id}, which it found.`, "G7");
    }
  }

  /** What a cancel of a session must cover: in the log when it was sent, and not over when it was answered. */
  #found({ sessionId, params, moment }: RequestOf<"cancel-session">): readonly string[] {
    if (moment === undefined) return [];
    const isOpen = (one: Pick<LoggedRun, "sessionId" | "seq" | "settledAt">): boolean =>
      one.sessionId === sessionId && isBy(one.seq, moment.sentHead) && !isBy(one.settledAt, moment.head);
    const found: string[] = [];
    for (const run of this.#index.runs.values()) if (isOpen(run)) found.push(run.runId);
    for (const process of params.keep === true ? [] : this.#index.processes.values()) {
      if (isOpen(process) && isBackground(process, moment.sentHead)) found.push(process.processId);
    }
    return found;
  }

  #run(request: CancelRequest, runId: RunId, receipt: Receipt): void {
    const run = this.#index.runs.get(runId);
    const { outcome, settledAt, seq } = run ?? NOT_LOGGED;
    this.#stoppable(request, { id: runId, seq, outcome, settledAt, cancels: [run?.cancel] }, receipt);
    if (receipt.kind === "withdrawn") {
      if (run?.started === true) this.#false(`${runId} was reported as withdrawn, and it started.`);
      const recorded = outcomeBy(run, headOf(request));
      if (recorded?.kind !== "cancelled") {
        this.#false(`${runId} was reported as withdrawn, and the log has ${print(recorded)}.`);
      } else if (isOther(request, recorded)) {
        this.#false(`${runId} was reported as withdrawn, and another request had withdrawn it.`);
      }
    }
    if (receipt.kind === "stopping" && outcome?.kind !== "cancelled") {
      this.#false(`${runId} was reported as stopping, and ended as ${print(outcome)}.`);
    }
  }

  #call(request: CancelRequest, callId: CallId, receipt: Receipt): void {
    const call = this.#index.calls.get(callId);
    const { outcome, settledAt, seq } = call ?? NOT_LOGGED;
    const own = isBy(call?.cancel?.at, headOf(request)) ? call?.cancel : undefined;
    const cancels = [own ?? this.#index.runs.get(runOf(callId))?.cancel];
    this.#stoppable(request, { id: callId, seq, outcome, settledAt, cancels }, receipt);
    if (receipt.kind === "withdrawn" && call?.begun !== false) {
      this.#false(`${callId} was reported as withdrawn, and the log does not say that it had not begun.`);
    }
  }

  #process(request: CancelRequest, processId: ProcessId, receipt: Receipt): void {
    const process = this.#index.processes.get(processId);
    const { outcome, settledAt, seq } = process ?? NOT_LOGGED;
    const cancels = process === undefined ? [] : this.#index.cancelsOf(process);
    this.#stoppable(request, { id: processId, seq, outcome, settledAt, cancels }, receipt);
    if (receipt.kind === "withdrawn") this.#false(`${processId} was reported as withdrawn, which processes never are.`);
  }

  /** A process in the background is stopped by its own cancel, which the cancel of its session records. */
  #coveredProcess(request: CancelRequest, processId: ProcessId, receipt: Receipt): void {
    const process = this.#index.processes.get(processId);
    const { outcome, settledAt, seq } = process ?? NOT_LOGGED;
    this.#stoppable(request, { id: processId, seq, outcome, settledAt, cancels: [process?.cancel] }, receipt);
    if (receipt.kind !== "stopping") this.#false(`${processId} was covered, and reported as ${receipt.kind}.`);
  }

  /** What holds for everything that can be stopped. */
  #stoppable(request: CancelRequest, { id, seq, cancels, ...one }: Stoppable, receipt: Receipt): void {
    const head = headOf(request);
    const recorded = outcomeBy(one, head);
    if (receipt.kind === "settled" && !same(receipt.outcome, recorded)) {
      this.#false(`${id} was reported as settled with ${print(receipt.outcome)}; the log has ${print(recorded)}.`);
    }
    const { ended } = receipt;
    if (ended?.kind === "settled" && !same(ended.outcome, recorded)) {
      this.#false(`The wait for ${id} returned ${print(ended.outcome)}; the log has ${print(recorded)}.`);
    }
    if (receipt.kind === "unknown" && isBy(seq, head) && request.moment?.server !== "not-driving") {
      this.#false(`${id} is in the log, and was reported as unknown.`);
    }
    if (receipt.kind !== "stopping") return;
    const cancel = cancels.find((each) => each?.at === receipt.since && isBy(each.at, head));
    if (cancel === undefined) {
      this.#false(`${id} is stopping since ${receipt.since}, where the log has no stop of it.`);
    } else if (request.params.note !== undefined && receipt.first === isOther(request, cancel)) {
      this.#false(`${id} is stopping, and this request was ${receipt.first ? "not " : ""}the first.`);
    }
  }

  #prompt(request: RequestOf<"cancel-prompt">, receipt: Receipt & { readonly runId?: RunId }): void {
    const { label } = request.params;
    const run = this.#index.labels.get(label)?.[0];
    if (request.params.early === true && receipt.kind === "withdrawn" && receipt.runId === undefined) {
      this.#awaited(label, run);
      return;
    }
    if (receipt.kind !== "unknown") {
      if (run === undefined) this.#report("lost", `${label} was reported as ${receipt.kind}, and is not in the log.`);
      else this.#run(request, run.runId, receipt);
      // A handle on a run answers without the id that its caller has already.
      const isNamed = receipt.runId !== undefined || request.moment !== undefined;
      if (isNamed && receipt.runId !== run?.runId) this.#false(`The cancel of ${label} reached ${receipt.runId}.`);
      return;
    }
    if (this.#isKnown(request, run)) this.#false(`${label} had been accepted, and its cancel reported it as unknown.`);
  }

  /** A prompt that was cancelled before it arrived may never arrive. If it does, it is withdrawn. */
  #awaited(label: string, run: LoggedRun | undefined): void {
    if (run === undefined || (run.started !== true && run.outcome?.kind === "cancelled")) return;
    this.#report(
      "falseReceipts",
      `${label} was cancelled before it arrived, and ended as ${print(run.outcome)}.`,
      "G7",
    );
  }

  /** A key may be used for the first time after its cancel; a prompt that was received before it is known. */
  #isKnown({ params, sentAt, life, moment }: RequestOf<"cancel-prompt">, run: LoggedRun | undefined): boolean {
    return this.#history.requests.some((prompt) => {
      if (prompt.name !== "prompt" || prompt.params.label !== params.label) return false;
      if (prompt.answer.kind === "returned" && prompt.answeredAt < sentAt) return true;
      // Its acceptance may have been on its way when the worker lost its lease.
      if (life === undefined || moment === undefined || moment.server === "not-driving") return false;
      return prompt.params.runId === run?.runId && prompt.sentAt < sentAt && isBy(run?.seq, moment.head);
    });
  }

  #false(message: string): void {
    this.#report("falseReceipts", message);
  }
}

const NOT_LOGGED = { outcome: undefined, settledAt: undefined, seq: undefined };

/** Whether a process was in the background by then, and ends with its session only if that is cancelled. */
const isBackground = ({ requested, detachedAt }: LoggedProcess, head: Seq): boolean =>
  requested.lasting !== true && (requested.owner.startsWith("ses_") || isBy(detachedAt, head));

/** Whether this is certainly not the request that a reason goes back to. */
const isOther = ({ params }: CancelRequest, { reason }: Pick<LoggedCancel, "reason">): boolean =>
  params.note !== undefined && noteOf(reason) !== params.note;
