// Stops that were carried out and could not be recorded before their session was lost to another worker. They are
// recorded when the session is loaded again, before anything of it begins.
import type { Command } from "../../core/model/command.ts";
import type { SessionId } from "../../core/model/ids.ts";
import type { Commit } from "../log/commit.ts";
import type { SessionState } from "../log/session-state.ts";

export class UnrecordedStops {
  readonly #stops = new Map<SessionId, readonly Command[]>();

  add(session: SessionId, stops: readonly Command[]): void {
    this.#stops.set(session, [...(this.#stops.get(session) ?? []), ...stops]);
  }

  submit(lane: SessionState, commit: Commit): void {
    const stops = this.#stops.get(lane.id) ?? [];
    this.#stops.delete(lane.id);
    // Their callers were answered; a failing store keeps them again.
    for (const stop of stops) commit.submit(lane, stop).catch(() => {});
  }
}
