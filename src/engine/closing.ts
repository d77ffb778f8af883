// What is said to whoever asks for something that this worker will not do any more.
import { ControlError } from "../core/control-error.ts";
import type { RunId } from "../core/ids.ts";

export const closing = (): ControlError =>
  new ControlError("shutting_down", "Belay is shutting down and accepts nothing new.");

export const leaving = (runId: RunId): ControlError =>
  new ControlError(
    "shutting_down",
    `Belay has shut down; ${runId} has no outcome yet and is taken up at the next start.`,
  );

/** For whoever asks only now: it may have ended or not. */
export const gone = (runId: RunId): ControlError =>
  new ControlError("shutting_down", `Belay has shut down; what became of ${runId} can be asked at the next start.`);

export const elsewhere = (runId: RunId): ControlError =>
  new ControlError("unavailable", `The session of ${runId} may be driven by another worker now; ask again.`);
