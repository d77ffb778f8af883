// Whatever a cancel covers has heard of it once that is decided: it waits neither for the store nor for an interrupt.

import { type CallId, isCallId } from "../src/core/model/ids.ts";
import type { ManualClock } from "../src/testing/manual-clock.ts";
import { type Actor, hears } from "./actors.ts";
import type { Clients } from "./clients.ts";
import type { Facts } from "./facts.ts";
import { isHeldUp, laneOf } from "./lane-of.ts";
import type { Life } from "./life.ts";
import type { ProcessFacts } from "./process-book.ts";
import { type AskedRecord, what } from "./records.ts";

interface CheckedSimulation {
  readonly facts: Facts;
  readonly life: Life;
  readonly clients: Clients;
  readonly clock: Pick<ManualClock, "elapsed">;
  /** Until then a caller may wait for a store that does not answer. */
  readonly silentUntil: number;
  violate(rule: string, message: string): void;
}

/** Everything that could happen by itself has happened. */
export function checkStops(house: CheckedSimulation): void {
  const { facts, life, clients } = house;
  if (life.release || house.clock.elapsed() < house.silentUntil) return;
  for (const actor of life.actors.going) {
    if (actor.aborted || !hears(actor)) continue;
    const lane = laneOf(actor, facts, life);
    if (lane?.phase !== "ready" || lane.epoch === undefined || isHeldUp(lane)) continue;
    // Or the store is asked where the run is.
    if (life.store.parked.some(({ verb, about }) => verb === "run" && about === actor.runId)) continue;
    const by = clients.asked.find((one) => one.life === life.number && stops(one, actor, facts));
    if (by !== undefined) house.violate("G28", `${actor.id} goes on, and ${what(by)} is decided.`);
  }
}

type StopsSeen = Pick<CheckedSimulation, "facts" | "life" | "clients">;

/** The stop that this worker had received before a piece of work began, if it covers that. */
export const workStopsOf = (house: StopsSeen) => (actor: Actor) => workStop(actor, house);

/** The same for a process that comes into being. `command`: by it is known who has started one for the session. */
export const processStopsOf = (house: StopsSeen) => (one: ProcessFacts, command: string) =>
  processStop(one, command, house);

function workStop(actor: Actor, { facts, life, clients }: StopsSeen): string | undefined {
  if (life.release) return undefined;
  // Until the store has answered where its run is, no session has received it.
  const isReceived = (one: AskedRecord): boolean => one.life === life.number && one.kind === "cancel" && one.isFound;
  const by = clients.asked.find((one) => isReceived(one) && stops(one, actor, facts));
  return by === undefined ? undefined : what(by);
}

function processStop(
  { id, owner, session }: ProcessFacts,
  command: string,
  { facts, life, clients }: StopsSeen,
): string | undefined {
  if (life.release) return undefined;
  const call = isCallId(owner) ? facts.works.get(owner) : undefined;
  // What goes on when its call has ended is the session's.
  const goesOn = call?.settled === undefined ? call : undefined;
  const started = clients.asked.find((one) => one.kind === "start" && one.command === command)?.ticket ?? Infinity;
  const by = clients.asked.find((one) => {
    if (one.life !== life.number || one.kind !== "cancel" || !one.isFound || one.keep) return false;
    if (one.scope === "process") return one.target === id && isCarriedOut(one);
    if (goesOn !== undefined) return stops(one, { id: owner as CallId, runId: goesOn.runId }, facts);
    const isSessions = one.scope === "session" || one.scope === "close";
    return isSessions && one.session === session && one.ticket > started && isCarriedOut(one);
  });
  return by === undefined ? undefined : what(by);
}

/** One that was refused may have stopped nothing, unless its caller was told that it was carried out. */
const isCarriedOut = (asked: AskedRecord): boolean => asked.refused === undefined || asked.carriedOut === true;

function stops(asked: AskedRecord, { id, runId }: Pick<Actor, "id" | "runId">, facts: Facts): boolean {
  if (asked.kind !== "cancel" || !isCarriedOut(asked)) return false;
  switch (asked.scope) {
    case "session":
    case "close":
      return asked.standing.includes(runId);
    case "run":
      return asked.target === runId;
    case "key":
      return asked.target === facts.runs.get(runId)?.key && asked.standing.includes(runId);
    case "call":
      return asked.target === id;
    case "process":
    case "question":
      return false;
  }
}
