// Whatever a cancel covers has heard of it once that is decided: it waits neither for the store nor for an interrupt.
import type { Actor } from "./actors.ts";
import type { Clients } from "./clients.ts";
import type { Facts } from "./facts.ts";
import type { Life } from "./life.ts";
import { hears } from "./oracle.ts";
import { type AskedRecord, what } from "./records.ts";

interface House {
  readonly facts: Facts;
  readonly life: Life;
  readonly clients: Clients;
  violate(rule: string, message: string): void;
}

/** Everything that could happen by itself has happened. */
export function checkStops(house: House): void {
  const { facts, life, clients } = house;
  if (life.letGo) return;
  for (const actor of life.actors.going) {
    if (actor.aborted || !hears(actor)) continue;
    const { session, key } = facts.runs.get(actor.runId) ?? {};
    const lane = session === undefined ? undefined : life.engine.lanes.peek(session);
    if (lane?.phase !== "ready" || lane.epoch === undefined) continue;
    // A cancel is decided after what was asked before it, and that may wait for the store.
    if (lane.pumping || lane.doubt || lane.mailbox.length > 0) continue;
    // Or the store is asked where the run is.
    if (life.store.parked.some(({ verb, about }) => verb === "run" && about === actor.runId)) continue;
    const by = clients.asked.find((one) => one.life === life.number && stops(one, actor, key));
    if (by !== undefined) house.violate("G28", `${actor.id} goes on, and ${what(by)} is decided.`);
  }
}

/** One that was refused may have stopped nothing. */
function stops(asked: AskedRecord, { id, runId }: Actor, key: string | undefined): boolean {
  if (asked.kind !== "cancel" || asked.refused !== undefined) return false;
  switch (asked.scope) {
    case "session":
    case "close":
      return asked.standing.includes(runId);
    case "run":
      return asked.target === runId;
    case "key":
      return asked.target === key && asked.standing.includes(runId);
    case "call":
      return asked.target === id;
    case "process":
    case "question":
      return false;
  }
}
