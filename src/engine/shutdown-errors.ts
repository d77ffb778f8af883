// Errors for requests that this worker no longer carries out.
import { ControlError } from "../core/errors.ts";
import type { RunId, SessionId } from "../core/model/ids.ts";

export const closing = (): ControlError =>
  new ControlError("shutting_down", "Belay is shutting down and accepts nothing new.");

export const leaving = (runId: RunId): ControlError =>
  new ControlError(
    "shutting_down",
    `Belay has shut down; ${runId} has no outcome yet and is recovered at the next start.`,
  );

/** For a request after the shutdown: the run may have ended or not. */
export const gone = (runId: RunId): ControlError =>
  new ControlError("shutting_down", `Belay has shut down; the outcome of ${runId} is available after the next start.`);

export const elsewhere = (runId: RunId): ControlError =>
  new ControlError("unavailable", `The session of ${runId} may be driven by another worker now; retry.`);

/** For a caller that waits for the store when Belay closes: its write may have been made. */
export const unanswered = (session: SessionId): ControlError =>
  new ControlError("unavailable", `Belay has closed before the store answered for session ${session}.`);

export const drivenByAnother = (session: SessionId): ControlError =>
  new ControlError("unavailable", `Session ${session} is driven by another worker now.`);
