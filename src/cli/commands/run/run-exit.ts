// The exit codes of `belay run`, and the message when it exits before the outcome.
import type { Outcome } from "../../../core/model/cancel.ts";
import type { SessionId } from "../../../core/model/ids.ts";

/** The exit code of each recorded outcome. For a refused run or an unknown outcome it is that of the error. */
export const EXIT_OUTCOME = { completed: 0, failed: 20, cancelled: 21, lost: 22 } as const satisfies Record<
  Outcome["kind"],
  number
>;

/** The reader of stdout closed the pipe before the outcome: the exit code that shells use for SIGPIPE. */
export const EXIT_UNREAD = 141;

/** The state of this program's cancel. Only an answered one is known to be recorded. */
export type CancelSent = "none" | "sent" | "answered" | "failed";

export interface ExitMessage {
  /** The run, if its id is known. */
  readonly name: string;
  /** Undefined: the server has not answered yet, so it is not known whether the prompt was accepted. */
  readonly sessionId: SessionId | undefined;
  readonly place: "server" | "here";
  readonly cancel: CancelSent;
  /** The options with which other commands find the run. */
  readonly options: string;
}

/** Says what happens to a run after this program exits, as far as that is known. */
export function formatExitMessage({ name, sessionId, place, cancel, options }: ExitMessage): string {
  if (sessionId === undefined) {
    const sent = cancel === "none" ? "" : " at once, before the cancel was answered";
    return `Exited${sent}. ${name} may have been accepted and may run: belay ps${options}, belay stop-all${options}`;
  }
  const id = `${sessionId}${options}`;
  if (cancel === "none") {
    return place === "here"
      ? `Exited. ${name} resumes when the store is next opened.`
      : `Exited. ${name} continues: belay follow ${id}, or belay cancel ${id}`;
  }
  if (cancel === "answered") {
    return place === "here"
      ? `Exited at once. The stop of ${name} is recorded; the next program that opens the store ends it.`
      : `Exited at once. The server is still stopping ${name}: belay runs ${id}`;
  }
  return place === "here"
    ? `Exited at once, before the cancel was recorded: ${name} resumes when the store is next opened.`
    : `Exited at once. The cancel was not answered, so ${name} may still run: belay cancel ${id}`;
}
