// The terminal event of a run: its outcome, and what a program that waits for the answer needs without reading the log:
// the caller's key, the last turn and its text.

import { RUN_TEXT_CHARS_MAX } from "../limits.ts";
import type { Outcome } from "../model/cancel.ts";
import type { RunEvent } from "../model/event.ts";
import type { RunId, TurnId } from "../model/ids.ts";

/** The text of a turn, up to a limit. */
export interface TurnText {
  readonly turnId: TurnId;
  readonly text: string;
  /** The text is longer: `turn.settled` and `run.text()` have all of it. */
  readonly truncated?: true;
}

export const beginText = (turnId: TurnId): TurnText => ({ turnId, text: "" });

export function extendText(before: TurnText, piece: string): TurnText {
  if (before.truncated === true || piece === "") return before;
  return textOf(before.turnId, before.text + piece);
}

export function textOf(turnId: TurnId, text: string): TurnText {
  if (text.length <= RUN_TEXT_CHARS_MAX) return { turnId, text };
  return { turnId, text: text.slice(0, RUN_TEXT_CHARS_MAX).toWellFormed(), truncated: true };
}

/** The fields of a run that its terminal event contains. A run that never began has no last turn. */
interface Ended {
  readonly id: RunId;
  readonly key: string | undefined;
  readonly last?: TurnText | undefined;
}

export function settledRun({ id, key, last }: Ended, outcome: Outcome): Extract<RunEvent, { type: "run.settled" }> {
  return { type: "run.settled", runId: id, outcome, ...(key === undefined ? {} : { key }), ...last };
}
