// What somebody is told who leaves a run alone: what becomes of it, as far as that is known.
import type { SessionId } from "../../../core/model/ids.ts";

/** How far our own cancel has come. Only one that was answered is known to have been recorded. */
export type CancelSent = "none" | "sent" | "answered" | "failed";

export interface ExitMessage {
  /** The run, if its id is known. */
  readonly name: string;
  /** Undefined: the server has not answered yet, so it is not known whether the prompt was accepted. */
  readonly sessionId: SessionId | undefined;
  readonly place: "server" | "here";
  readonly cancel: CancelSent;
  /** What other commands need to find this place. */
  readonly options: string;
}

export function formatExitMessage({ name, sessionId, place, cancel, options }: ExitMessage): string {
  if (sessionId === undefined) {
    const sent = cancel === "none" ? "" : " at once, before the cancel was answered";
    return `Left${sent}. ${name} may have been accepted and may go on: belay ps${options}, belay stop-all${options}`;
  }
  const id = `${sessionId}${options}`;
  if (cancel === "none") {
    return place === "here"
      ? `Left. ${name} is taken up again when the store is next opened.`
      : `Left. ${name} goes on: belay follow ${id}, or belay cancel ${id}`;
  }
  if (cancel === "answered") {
    return place === "here"
      ? `Left at once. ${name} is recorded as being stopped; whoever opens the store next ends it.`
      : `Left at once. ${name} goes on being stopped by the server: belay runs ${id}`;
  }
  return place === "here"
    ? `Left at once, before the cancel was recorded: ${name} is taken up again when the store is next opened.`
    : `Left at once. The cancel was not answered, so ${name} may go on: belay cancel ${id}`;
}
