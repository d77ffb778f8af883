// The notifications of the log's writer to the rest of the engine.
import type { Command } from "../../core/model/command.ts";
import type { Recorded } from "../../core/model/event.ts";
import type { Seq, SessionId } from "../../core/model/ids.ts";
import type { Coverage } from "../../core/policy/covers.ts";
import type { SessionState } from "./session-state.ts";

/** Receives the consequences of each decision. */
export interface CommitListener {
  /** A command was decided; `covered`: what it stops. Its events are not durable yet. */
  decided(lane: SessionState, command: Command, covered: Coverage | undefined): void;
  /** These events are durable. */
  recorded(lane: SessionState, events: readonly Recorded[]): void;
  /** The lane may begin or stop other work now: the log was read again, or its health has changed. */
  caughtUp(lane: SessionState): void;
  /** A batch of a lane that is no longer driven here was written after all. `head`: the head of the log then. */
  landedLate(session: SessionId, head: Seq): void;
  /** The lane has nothing in flight any more. */
  rested(lane: SessionState): void;
  /** Another worker drives this lane now. `kept`: stops that were carried out here and are not recorded. */
  fenced(lane: SessionState, kept: readonly Command[]): void;
}
