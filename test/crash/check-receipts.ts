// Whether receipts were true: what was said to be stopped is stopped, what was said to be changed is changed, and what
// was refused has left no trace.
import { isDeepStrictEqual } from "node:util";
import type { Waited } from "../../src/control.ts";
import type { CancelReceipt, Outcome } from "../../src/core/cancel.ts";
import type { Event } from "../../src/core/event.ts";
import { type CallId, type ProcessId, type RunId, runOf, type Seq, type SessionId } from "../../src/core/ids.ts";
import type { Report } from "./finding.ts";
import type { History, Operation, OperationOf } from "./history.ts";
import type { LogIndex } from "./log-index.ts";

type Receipt = CancelReceipt & Waited;

export function checkReceipts(history: History, index: LogIndex, report: Report): void {
  const checker = new ReceiptCheck(history, index, report);
  for (const operation of history.operations) checker.note(operation);
}

class ReceiptCheck {
  readonly #history: History;
  readonly #index: LogIndex;
  readonly #report: Report;

  constructor(history: History, index: LogIndex, report: Report) {
    this.#history = history;
    this.#index = index;
    this.#report = report;
  }

  note(operation: Operation): void {
    switch (operation.name) {
      case "cancel-run":
        this.#cancel(operation, ({ runId }, told) => this.#run(operation.sessionId, runId, told));
        return;
      case "cancel-prompt":
        this.#cancel(operation, (_, told) => this.#prompt(operation, told));
        return;
      case "cancel-session":
        this.#cancel(operation, (_, told) => {
          for (const { runId, receipt } of told.runs) this.#run(operation.sessionId, runId, receipt);
          if (!("processes" in told)) return;
          for (const one of told.processes ?? []) this.#process(operation.sessionId, one.processId, one.receipt);
        });
        return;
      case "cancel-call":
        this.#cancel(operation, ({ callId }, told) => this.#call(operation.sessionId, callId, told));
        return;
      case "cancel-process":
        this.#cancel(operation, ({ processId }, told) => this.#process(operation.sessionId, processId, told));
        return;
      case "edit":
      case "move":
      case "steer":
      case "withdraw":
        this.#queue(operation);
        return;
      case "answer":
        this.#answer(operation);
        return;
      case "prompt":
      case "outcome":
        return; // Looked at with the prompts.
    }
  }

  /** A cancel is answered with a receipt or not at all; refused it is never. */
  #cancel<K extends Operation["name"]>(
    { name, sessionId, ask, end }: OperationOf<K>,
    then: (ask: OperationOf<K>["ask"], told: Extract<OperationOf<K>["end"], { kind: "ok" }>["told"]) => void,
  ): void {
    if (end.kind === "ok") then(ask, end.told);
    if (end.kind === "fail") this.#false(`A ${name} in ${sessionId} was refused: ${end.code}.`);
  }

  #run(sessionId: SessionId, runId: RunId, receipt: Receipt): void {
    const run = this.#index.runs.get(runId);
    const outcome = run?.outcomes[0];
    const covers = (event: Event): boolean => isCancelOf(event, runId);
    this.#stopped(`${runId}`, { sessionId, receipt, outcome, covers });
    if (receipt.kind === "unknown" && run !== undefined) this.#false(`${runId} is in the log, and was called unknown.`);
    if (receipt.kind === "withdrawn" && run?.started === true) this.#false(`${runId} was withdrawn, and began.`);
    const stops = receipt.kind === "withdrawn" || receipt.kind === "stopping";
    if (stops && outcome?.kind !== "cancelled") {
      this.#false(`${runId} was said to be ${receipt.kind}, and ended as ${JSON.stringify(outcome)}.`);
    }
  }

  #call(sessionId: SessionId, callId: CallId, receipt: Receipt): void {
    const call = this.#index.calls.get(callId);
    const runId = runOf(callId);
    const covers = (event: Event): boolean =>
      isCancelOf(event, runId) || (event.type === "call.cancel_requested" && event.callId === callId);
    this.#stopped(callId, { sessionId, receipt, outcome: call?.outcome, covers });
    if (receipt.kind === "unknown" && call !== undefined) this.#false(`${callId} was called unknown.`);
  }

  #process(sessionId: SessionId, processId: ProcessId, receipt: Receipt): void {
    const outcome = this.#index.processes.get(processId);
    const covers = (event: Event): boolean =>
      event.type === "process.cancel_requested" ? event.processId === processId : event.type.endsWith("_requested");
    this.#stopped(processId, { sessionId, receipt, outcome, covers });
    if (receipt.kind === "unknown" && this.#index.processes.has(processId)) {
      this.#false(`${processId} was called unknown.`);
    }
  }

  /** What holds for everything that can be stopped. */
  #stopped(what: string, { sessionId, receipt, outcome, covers }: Stopped): void {
    if (receipt.kind === "settled" && !isDeepStrictEqual(receipt.outcome, outcome)) {
      this.#false(`${what} was said to have ended as ${JSON.stringify(receipt.outcome)}: ${JSON.stringify(outcome)}.`);
    }
    const { ended } = receipt;
    if (ended?.kind === "settled" && !isDeepStrictEqual(ended.outcome, outcome)) {
      this.#false(`${what} was waited for, and told as ${JSON.stringify(ended.outcome)}: ${JSON.stringify(outcome)}.`);
    }
    if (receipt.kind !== "stopping") return;
    const event = this.#index.at(sessionId, receipt.since);
    if (event === undefined || !covers(event)) {
      this.#false(`${what} is stopping since ${receipt.since}, where the log has ${event?.type ?? "nothing"}.`);
    }
  }

  #prompt(operation: OperationOf<"cancel-prompt">, receipt: Receipt): void {
    const { label } = operation.ask;
    const run = this.#index.labels.get(label)?.[0];
    if (receipt.kind !== "unknown") {
      if (run === undefined) this.#report("lost", `${label} was said to be ${receipt.kind}; the log does not have it.`);
      else this.#run(operation.sessionId, run.runId, receipt);
      return;
    }
    const known = this.#history.operations.some(
      (one) => one.name === "prompt" && one.ask.label === label && one.end.kind === "ok" && one.ended < operation.began,
    );
    if (known) this.#false(`${label} had been accepted, and its cancel called it unknown.`);
  }

  #queue(operation: OperationOf<"edit" | "move" | "steer" | "withdraw">): void {
    const { name, sessionId, ask, end } = operation;
    if (end.kind === "info") return;
    const changed = end.kind === "ok" && end.told.kind === "changed" ? end.told.seq : undefined;
    const text = "text" in ask ? ask.text : undefined;
    if (changed !== undefined) {
      if (!this.#isChange(operation, changed)) {
        this.#false(`${ask.runId} was changed (${name}) at ${changed}, and the log has no such thing there.`);
      }
    } else if (
      text !== undefined &&
      this.#index.has(sessionId, (event) => event.type === "run.edited" && event.prompt.text === text)
    ) {
      this.#report("refusedTraces", `${ask.runId} was not changed, it was said, and now reads "${text}".`);
    }
    const run = this.#index.runs.get(ask.runId);
    const over = run?.started === true || (run?.outcomes.length ?? 0) > 0;
    if (end.kind === "ok" && end.told.kind === "started" && !over) {
      this.#false(`${ask.runId} was said to have begun, and has not.`);
    }
  }

  #isChange({ name, sessionId, ask }: OperationOf<"edit" | "move" | "steer" | "withdraw">, seq: Seq): boolean {
    const event = this.#index.at(sessionId, seq);
    if (event === undefined || !("runId" in event) || event.runId !== ask.runId) return false;
    if (event.type === "run.edited") return name === "edit" && "text" in ask && event.prompt.text === ask.text;
    if (event.type === "run.moved") return name === "move";
    if (event.type === "run.steered") return name === "steer";
    return name === "withdraw" && event.type === "run.settled" && event.outcome.kind === "cancelled";
  }

  #answer({ ask, end }: OperationOf<"answer">): void {
    if (end.kind !== "ok") return;
    const ending = this.#index.questions.get(ask.questionId);
    const { told } = end;
    if (told.kind === "recorded" && ending?.kind !== ask.reply) {
      this.#false(`${ask.questionId} was ${ask.reply}, it was said, and ended as ${JSON.stringify(ending)}.`);
    }
    if (told.kind === "settled" && !isDeepStrictEqual(told.ending, ending)) {
      this.#false(`${ask.questionId} was said to have ended as ${JSON.stringify(told.ending)}.`);
    }
  }

  #false(message: string): void {
    this.#report("falseReceipts", message);
  }
}

interface Stopped {
  readonly sessionId: SessionId;
  readonly receipt: Receipt;
  readonly outcome: Outcome | undefined;
  readonly covers: (event: Event) => boolean;
}

/** Whether this asks for the end of a run: by its name, or with all that its session has. */
function isCancelOf(event: Event, runId: RunId): boolean {
  if (event.type === "run.cancel_requested") return event.runId === runId;
  return event.type === "session.cancel_requested" && event.covers.includes(runId);
}
