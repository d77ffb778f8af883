// What the engine says about a session, held against its log: busy exactly while there is a run without an outcome, and
// never ahead of what is durable.
import { emptyLane, evolve, type Lane } from "../src/core/model/lane.ts";
import { explain } from "../src/engine/explain.ts";
import type { SessionState } from "../src/engine/log/session-state.ts";
import type { Simulation } from "./simulation.ts";

export function checkStatus(simulation: Simulation): void {
  const { life, facts } = simulation;
  if (life.phase === "over") return;
  for (const lane of life.engine.lanes.all()) {
    if (lane.phase !== "ready") continue;
    const { head, live } = lane.durable;
    const logged = facts.head(lane.id);
    if (head > logged) simulation.violate("G16", `${lane.id} stands at ${head}; its log has ${logged}.`);
    if (head !== logged) continue;
    const open = facts.open(lane.id);
    if (statusOf(simulation, lane).busy !== open.length > 0) {
      simulation.violate("G24", `${lane.id} says that it is ${open.length > 0 ? "idle" : "busy"}, and is not.`);
    }
    const begun = open.find(({ startedAt }) => startedAt !== undefined);
    if (live?.id !== begun?.id)
      simulation.violate("G24", `${lane.id} says that ${live?.id} is live; it is ${begun?.id}.`);
  }
}

/** At rest: the state is the one that the log makes, and it says so. */
export function checkStates(simulation: Simulation): void {
  const { life, facts } = simulation;
  for (const lane of life.engine.lanes.all()) {
    if (lane.phase !== "ready") continue;
    const status = statusOf(simulation, lane);
    if (status.asOf !== facts.head(lane.id)) {
      simulation.violate("G16", `${lane.id} speaks as of ${status.asOf}; its log has ${facts.head(lane.id)}.`);
      continue;
    }
    let made: Lane = emptyLane(lane.id);
    for (const event of facts.log(lane.id)) made = evolve(made, event);
    // Memos are kept besides the log.
    if (plain(made) !== plain({ ...lane.durable, memos: made.memos })) {
      simulation.violate("G16", `${lane.id} is in another state than its log says.`);
    }
  }
}

/** What waits in an inbox knows its position if it was read from the log, and not if it was decided here. */
const plain = ({ inbox, ...lane }: Lane): string =>
  JSON.stringify([lane, inbox.map((one) => ({ ...one, seq: undefined, at: undefined }))]);

const NO_TIMES = new Map();

function statusOf({ life }: Simulation, lane: SessionState): ReturnType<typeof explain> {
  return explain(lane, { worker: life.worker, processes: [], times: NO_TIMES, mode: undefined, hasSlot: true });
}
