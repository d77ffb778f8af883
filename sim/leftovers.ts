// Nothing is left lying about at rest: no work, no command, no slot, no timer, no listener, nobody's name on a list.
import { getEventListeners } from "node:events";
import { LEASE_RENEW_MS } from "../src/core/limits.ts";
import type { Simulation } from "./simulation.ts";

/** The next renewal of the leases, and the moment at which they are let go of without one. */
const IDLE_TIMERS = 2;

export function checkLeftovers(simulation: Simulation): void {
  const { life, troubles, models } = simulation;
  const left = (count: number, what: string): void => {
    if (count > 0) simulation.violate("G33", `${count} ${what}, at rest.`);
  };
  for (const lane of life.engine.lanes.all()) {
    left(lane.works.length, `pieces of work are held by ${lane.id}`);
    left(
      lane.received.length + lane.pending.length + (lane.flight?.entries.length ?? 0),
      `commands are held by ${lane.id}`,
    );
    left(lane.drained.length + lane.still.length, `wait until nothing is going on in ${lane.id}`);
  }
  const { live, waiting } = life.engine.dispatch.load;
  left(live, "slots are taken");
  left(waiting, "lanes wait for a slot");
  left(life.busyTimers, "timers are left");
  // After trouble with the store, a session is looked at once more.
  const idle = life.timers - life.busyTimers - IDLE_TIMERS - models.lingering;
  if (troubles === 0 && !life.release) left(idle, `timers that nobody needs are left, besides ${LEASE_RENEW_MS} ms`);
  left(life.engine.held, "runs, waits, questions or followings are kept in mind");
  left(life.store.growing, "wait for a log to grow");
  checkSignals(simulation);
  checkWaiting(simulation);
}

/** Nothing waits forever: neither for an answer, nor for a call, nor for a place. */
function checkWaiting(simulation: Simulation): void {
  const { life } = simulation;
  for (const actor of [...life.actors.turns, ...life.actors.calls]) {
    if (actor.asks > 0) simulation.violate("G8", `${actor.id} still waits for an answer.`);
    if ("waitsFor" in actor && actor.waitsFor > 0) simulation.violate("G8", `${actor.id} still waits for a call.`);
    if ("pending" in actor && actor.pending > 0) {
      simulation.violate("G8", `${actor.id} still waits for something it asked.`);
    }
  }
  const { held, waiting } = life.actors.places;
  if (held > 0) simulation.violate("G33", `${held} places are taken, at rest.`);
  if (waiting > 0) simulation.violate("G33", `${waiting} calls still wait for a place.`);
}

/** Whoever listened to a signal for a while has stopped listening. */
function checkSignals(simulation: Simulation): void {
  const { life, clients } = simulation;
  const check = (signal: AbortSignal, whose: string): void => {
    const count = getEventListeners(signal, "abort").length;
    if (count > 0) simulation.violate("G33", `${count} still listen to the signal of ${whose}, at rest.`);
  };
  for (const { turn, id } of life.actors.turns) check(turn.signal, id);
  for (const { live, id } of life.actors.calls) check(live.signal, id);
  for (const follower of clients.followers) {
    if (follower.life === life.number) check(follower.stop.signal, `a follower of ${follower.session}`);
  }
}
