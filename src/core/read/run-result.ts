// The result of `await run.result()`: the whole answer of a completed run, or an error with its outcome.
import type { CancelReason, Outcome } from "../model/cancel.ts";
import type { RunId } from "../model/ids.ts";
import { eventsRemoved } from "./run-text.ts";
import type { RunView } from "./run-view.ts";

/** Thrown by `run.result()` for a run that did not complete. */
export class RunError extends Error {
  override readonly name = "RunError";
  readonly runId: RunId;
  readonly outcome: Exclude<Outcome, { kind: "completed" }>;
  /** The view of the run, with its answer so far. */
  readonly view: RunView;

  constructor(view: RunView, outcome: RunError["outcome"]) {
    super(`${view.id} ${endingOf(outcome)}`);
    this.runId = view.id;
    this.outcome = outcome;
    this.view = view;
  }
}

function endingOf(outcome: RunError["outcome"]): string {
  switch (outcome.kind) {
    case "failed":
      return `failed: ${outcome.message}`;
    case "cancelled":
      return `was cancelled (${outcome.reason.kind}${noteOf(outcome.reason)}).`;
    case "lost":
      return "is lost: its worker vanished, and it is not known what it did.";
  }
}

const noteOf = (reason: CancelReason): string =>
  "note" in reason && reason.note !== undefined ? `: ${reason.note}` : "";

/** A completed run. `text`: the whole text of its last turn. */
export type RunResult = Omit<RunView, "text" | "truncated" | "outcome"> & {
  readonly text: string;
  readonly outcome: Extract<Outcome, { kind: "completed" }>;
};

/**
 * Throws a RunError if the run did not complete, and `not_found` if its events were removed, because an empty text
 * would look like an empty answer. `text`: the whole text of its last turn.
 */
export function resultOf(view: RunView, text: string): RunResult {
  const { outcome, truncated: _, ...rest } = view;
  if (outcome?.kind !== "completed") throw new RunError(view, outcome ?? { kind: "lost" });
  if (view.incomplete === true && view.turns === 0) throw eventsRemoved();
  return { ...rest, outcome, text };
}
