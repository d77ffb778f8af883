// The part of the history checker that follows the session itself: created once, closed once, and stopped as it closes.
import type { Event } from "../model/event.ts";
import type { SessionId } from "../model/ids.ts";
import type { Report } from "./verify-inbox.ts";

export class SessionCheck {
  phase: "absent" | "open" | "closed" = "absent";
  id: SessionId | undefined;
  /** It was closed with runs in it: the next event must cancel them. */
  #leaves = false;

  create(id: SessionId, report: Report): void {
    if (this.phase !== "absent") report("G3", "The session was created twice.");
    this.phase = "open";
    this.id = id;
  }

  close(busy: boolean, report: Report): void {
    this.needsOpen("closed", report);
    this.phase = "closed";
    this.#leaves = busy;
  }

  /** Reports an operation that requires an open session. */
  needsOpen(what: string, report: Report): void {
    if (this.phase !== "open") report("G3", `The session was ${what} although it is ${this.phase}.`);
  }

  follows(event: Event, report: Report): void {
    if (this.#leaves && event.type !== "session.cancel_requested") {
      report("G9", "The session was closed, but what it had taken on was not cancelled at once.");
    }
    this.#leaves = false;
  }
}
