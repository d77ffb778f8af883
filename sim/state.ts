// Everything that can make a difference from here on, as one text: two executions with the same one have the same
// future. Taken only when nothing is about to happen by itself.
import type { SessionState } from "../src/engine/log/session-state.ts";
import type { Simulation } from "./simulation.ts";

export function stateOf(simulation: Simulation, left: readonly string[]): string {
  const { life, facts, clients, clock } = simulation;
  return JSON.stringify([
    left.toSorted(),
    simulation.lives,
    life.phase,
    [...facts.logs.values()].map((log) => log.map(({ at: _, ...event }) => event)),
    life.store.parked.map(({ verb, about, phase }) => [verb, about, phase]),
    [...life.engine.lanes.all()].map(laneState),
    life.actors.turns.map(({ id, end, aborted }) => [id, end, aborted]),
    life.actors.calls.map(({ id, end, aborted, asks }) => [id, end, aborted, asks]),
    clients.asked,
    clock.pending,
    [...simulation.stops.stopped, ...simulation.stops.stoppedCalls, ...simulation.processes.stopped],
    [...simulation.world.children].map(([id, { child, life: of }]) => [id, of, child.alive, child.stops.length]),
    simulation.world.starting.map(({ request }) => request.id),
    life.actors.calls.map(({ processes: { pending, told, handles } }) => [pending, [...told], handles.length]),
  ]);
}

function laneState(lane: SessionState): readonly unknown[] {
  return [
    lane.phase,
    lane.decided,
    lane.durable,
    lane.received.map((entry) => entry.command),
    lane.pending.map((entry) => [entry.command, entry.events]),
    lane.flight?.entries.map((entry) => [entry.command, entry.events]),
    lane.health.kind === "well" ? "well" : [lane.health.kind, lane.health.until, lane.health.failures],
    lane.works.map(({ id, phase, waits }) => [id, phase, waits]),
  ];
}
