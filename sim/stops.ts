// Whatever a cancel covers has heard of it once that is decided: it waits neither for the store nor for an interrupt.
import type { RunId } from "../src/core/ids.ts";
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
    const session = facts.runs.get(actor.runId)?.session;
    const lane = session === undefined ? undefined : life.engine.lanes.peek(session);
    if (lane?.phase !== "ready" || lane.epoch === undefined) continue;
    // A cancel is decided after what was asked before it, and that may wait for the store.
    if (lane.pumping || lane.doubt || lane.mailbox.length > 0) continue;
    // Or the store is asked where the run is.
    if (life.store.parked.some(({ verb, about }) => verb === "run" && about === actor.runId)) continue;
    const by = clients.asked.find((one) => one.life === life.number && stops(one, actor.runId));
    if (by !== undefined) house.violate("G28", `${actor.id} goes on, and ${what(by)} is decided.`);
  }
}

/** One that was refused may have stopped nothing. */
function stops(asked: AskedRecord, run: RunId): boolean {
  if (asked.kind !== "cancel" || asked.refused !== undefined) return false;
  if (asked.scope === "run") return asked.target === run;
  return (asked.scope === "session" || asked.scope === "close") && asked.standing.includes(run);
}
