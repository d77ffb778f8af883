// What the only writer tells the rest of the engine.
import type { Command } from "../../core/model/command.ts";
import type { Recorded } from "../../core/model/event.ts";
import type { Coverage } from "../../core/policy/covers.ts";
import type { LiveLane } from "./session-state.ts";

/** What follows from a decision, in the rest of the engine. */
export interface Consequences {
  /** A command was decided; `covered`: what it stops. Its events are not durable yet. */
  decided(lane: LiveLane, command: Command, covered: Coverage | undefined): void;
  /** These events are durable. */
  recorded(lane: LiveLane, events: readonly Recorded[]): void;
  /** The lane may begin, stop or start other work now: the log was read again, or its health has changed. */
  caughtUp(lane: LiveLane): void;
  /** Nothing is on its way to the store any more. */
  rested(lane: LiveLane): void;
  /** Another worker drives this lane now. `kept`: stops that were carried out here and are not recorded. */
  fenced(lane: LiveLane, kept: readonly Command[]): void;
}
