// Processes at rest: everything has ended, and what was to be told was told, once.
import { takesBeginnings } from "../src/engine/log/health.ts";
import type { ProcessFacts } from "./process-book.ts";
import { isOwed } from "./process-observer.ts";
import type { Simulation } from "./simulation.ts";

/** One process takes a step towards its end; false if there is none to take. */
export function endProcess({ world, trace, life }: Simulation): boolean {
  const [starting] = world.starting;
  if (starting !== undefined) {
    trace.note(`let ${starting.request.id} start`);
    starting.gate.open();
    return true;
  }
  if (life.phase !== "open") return false;
  // One that is being stopped ends by itself, or by force, in its own time.
  const child = world.going.find(({ signals }) => signals.length === 0);
  if (child === undefined) return false;
  trace.note(`exit of ${child.request.id}`);
  child.exit(0);
  return true;
}

/** The kernel reports the death of a process that it had not reported so far; false if there is none. */
export function verifyDeath({ world, trace }: Simulation): boolean {
  const child = world.going.find(({ dying }) => dying);
  if (child === undefined) return false;
  trace.note(`verify the death of ${child.request.id}`);
  child.verifyDeath();
  return true;
}

const ASKED_MAX = 3;

/** Results that wait for a turn get one: somebody says something. True if that was done. */
export function askForUntold({ facts, clients, sessions, trace, life }: Simulation): boolean {
  if (life.phase !== "open") return false;
  for (const session of sessions) {
    if (facts.closed.has(session) || !facts.processes.of(session).some(isUntold)) continue;
    const lane = life.engine.lanes.peek(session);
    if (lane !== undefined && !takesBeginnings(lane.health, life.engine.clock.elapsed())) continue;
    const text = `what has ended in ${session}?`;
    // One that another worker kept us from recording is asked again, as whoever has asked would do.
    const asked = clients.prompts.filter((prompt) => prompt.text === text && prompt.life === life.number);
    if (asked.length >= ASKED_MAX || asked.some(({ refused }) => refused !== "unavailable")) continue;
    trace.note(`ask ${session}`);
    clients.prompt(session, { text, delivery: "queue", key: undefined });
    return true;
  }
  return false;
}

const isUntold = (one: ProcessFacts): boolean => isOwed(one) && one.taken.length === 0 && one.heard.length === 0;

export function checkProcesses(simulation: Simulation): void {
  const { facts, world, life, processes } = simulation;
  for (const one of facts.processes.all.values()) checkOne(simulation, one);
  for (const id of world.survivors) simulation.violate("G19", `${id} goes on, at rest.`);
  if (life.engine.processes.count > 0) {
    simulation.violate("G33", `${life.engine.processes.count} processes are still held, at rest.`);
  }
  if (!life.release && life.engine.processes.dropped !== processes.dropped) {
    const { dropped } = life.engine.processes;
    simulation.violate("G22", `${processes.dropped} results were dropped, and ${dropped} counted.`);
  }
  for (const { id, processes: user } of life.actors.calls) {
    if (user.pending > 0 && !life.release) simulation.violate("G8", `${id} still waits for a process.`);
  }
}

function checkOne(simulation: Simulation, one: ProcessFacts): void {
  const { id, taken, heard } = one;
  if (isUntold(one) && !simulation.facts.closed.has(one.session)) {
    simulation.violate("G22", `The model was never told how ${id} ended.`);
  }
  if (taken.length > 0 && heard.some(({ early }) => early)) {
    simulation.violate("G22", `The model was told how ${id} ended by a call that had waited for it, and once more.`);
  }
}
