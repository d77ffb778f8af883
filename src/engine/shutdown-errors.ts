// What is said to whoever asks for something that this worker will not do any more.
import { ControlError } from "../core/errors.ts";
import type { RunId, SessionId } from "../core/model/ids.ts";

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

/** For a caller that waits for the store when Belay closes: what was sent may have been written. */
export const unanswered = (session: SessionId): ControlError =>
  new ControlError("unavailable", `Belay has closed before the store answered for session ${session}.`);

export const drivenByAnother = (session: SessionId): ControlError =>
  new ControlError("unavailable", `Session ${session} is driven by another worker now.`);
