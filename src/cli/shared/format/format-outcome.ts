// Formats receipts, outcomes and reasons for people.
import type { CancelReason, CancelReceipt, Failure, Outcome, SessionReceipt } from "../../../core/model/cancel.ts";
import type { Exit } from "../../../core/model/event.ts";

export function formatReceipt(receipt: CancelReceipt): string {
  switch (receipt.kind) {
    case "withdrawn":
      return "withdrawn: it had not begun, and never will";
    case "stopping":
      return receipt.first
        ? `stopping: recorded at position ${receipt.since} of the log; this request was the first`
        : `stopping: it was already being stopped, since position ${receipt.since}; the first reason is kept`;
    case "settled":
      return `settled: too late, it had already ended: ${formatOutcome(receipt.outcome)}`;
    case "unknown":
      return "unknown: there is nothing of that name";
  }
}

export function formatSessionReceipt(receipt: SessionReceipt): string {
  switch (receipt.kind) {
    case "idle":
      return "idle: nothing was going on, so nothing was changed";
    case "unknown":
      return "unknown: there is no such session";
    case "withdrawn":
      return `withdrawn: ${count(receipt.runs.length, "run")} had not begun, and never will`;
    case "stopping":
      return `stopping: it covers ${covered(receipt)}, each with its own receipt`;
  }
}

function covered({ runs, processes = [] }: SessionReceipt & { readonly processes?: readonly unknown[] }): string {
  const background = `${count(processes.length, "process", "processes")} in the background`;
  if (processes.length === 0) return count(runs.length, "run");
  return runs.length === 0 ? background : `${count(runs.length, "run")} and ${background}`;
}

export function formatOutcome(outcome: Outcome): string {
  switch (outcome.kind) {
    case "completed":
      return outcome.into === undefined ? "completed" : "completed: its words were taken into the live run";
    case "failed":
      return `failed: ${outcome.message}`;
    case "cancelled":
      return `cancelled (${formatReason(outcome.reason)})${formatDetails(outcome)}`;
    case "lost":
      return "lost: its worker vanished, and what it did is unknown";
  }
}

export function formatReason(reason: CancelReason): string {
  switch (reason.kind) {
    case "user":
      return reason.note ?? "asked for";
    case "policy":
      return `by policy: ${reason.note}`;
    case "timeout":
      return `after its limit of ${reason.limitMs} ms`;
    case "superseded":
      return "interrupted by another prompt";
    case "parent":
      return "what it belonged to had ended";
    case "closed":
      return "the session was closed";
    case "shutdown":
      return "Belay was shut down";
  }
}

/** The exit code, or the signal that ended the process. */
export function formatExit(exit: Exit | undefined): string {
  if (exit?.signal !== undefined) return `, by ${exit.signal}`;
  return exit?.code === undefined ? "" : `, with exit code ${exit.code}`;
}

function formatAbandoned(names: readonly string[] | undefined): string {
  return names === undefined ? "" : `; did not stop in time and was given up: ${names.join(", ")}`;
}

const formatError = (error: Failure | undefined): string =>
  error === undefined ? "" : `; failed while it was being stopped: ${error.message}`;

/** "1 run", "2 runs". */
export const count = (many: number, noun: string, nouns = `${noun}s`): string => `${many} ${many === 1 ? noun : nouns}`;

const formatDying = (dying: readonly string[] | undefined): string =>
  dying === undefined ? "" : `; still being killed: ${dying.join(", ")}`;

const formatDetails = ({ abandoned, dying, error }: Extract<Outcome, { kind: "cancelled" }>): string =>
  `${formatAbandoned(abandoned)}${formatDying(dying)}${formatError(error)}`;
