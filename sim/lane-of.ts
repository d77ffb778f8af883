// The lane of whatever goes on, as the engine has it.
import type { SessionState } from "../src/engine/log/session-state.ts";
import type { Actor } from "./actors.ts";
import type { Facts } from "./facts.ts";
import type { Life } from "./life.ts";

export function laneOf({ runId }: Actor, facts: Facts, { engine }: Life): SessionState | undefined {
  const session = facts.runs.get(runId)?.session;
  return session === undefined ? undefined : engine.lanes.peek(session);
}

/** A cancel of a session that is being loaded is decided once it is. */
export const isHeldUp = (lane: SessionState | undefined): boolean => lane === undefined || lane.received.length > 0;
