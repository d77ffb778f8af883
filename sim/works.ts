// What a piece of work really did is what is recorded of it. Looked at whenever a life of the engine is over.
import type { Outcome } from "../src/core/model/cancel.ts";
import type { CallId, ProcessId, SessionId, Work } from "../src/core/model/ids.ts";
import type { Json } from "../src/core/model/prompt.ts";
import { type Actor, type CallActor, TurnActor } from "./actors.ts";
import type { Facts, Settled, WorkFacts } from "./facts.ts";
import type { Life } from "./life.ts";
import type { ModelObserver } from "./model-observer.ts";
import { ModelTurn } from "./model-turn.ts";
import type { Witness } from "./witness.ts";

/** What is looked at. */
interface CheckedSimulation {
  readonly facts: Facts;
  readonly life: Life;
  readonly witness: Witness;
  readonly models: ModelObserver;
  readonly troubles: number;
  readonly hooks: boolean;
  violate(rule: string, message: string): void;
}

export function checkWorks(simulation: CheckedSimulation): void {
  const { facts, life } = simulation;
  // What it did after it had let go counts for nobody, and may have been done again.
  if (life.release) return;
  let late = 0;
  for (const actor of [...life.actors.turns, ...life.actors.calls]) {
    const work = facts.works.get(actor.id);
    const settled = work?.settled;
    if (work === undefined || settled === undefined || settled.setDown) continue;
    const { outcome } = settled;
    // Of a session that it has lost, or that it could not wait for when it closed, it tells nobody any more.
    const session = facts.runs.get(work.runId)?.session;
    const isGone = (id: SessionId): boolean =>
      life.store.fenced.has(id) || life.report?.unfinished.includes(id) === true;
    const tells = session === undefined || !isGone(session);
    if (outcome.kind === "cancelled" && outcome.abandoned !== undefined) late += tells && isLate(actor) ? 1 : 0;
    else if ((outcome.kind === "completed" || outcome.kind === "failed") && outcome.kind !== actor.end) {
      simulation.violate("G15", `${actor.id} is recorded as ${outcome.kind}; it has ${actor.end ?? "not ended"}.`);
    } else if (outcome.kind === "cancelled" && outcome.reason.kind !== "shutdown" && actor.end === "completed") {
      simulation.violate("G15", `${actor.id} completed, and is recorded as cancelled.`);
    } else if (outcome.kind === "cancelled" && outcome.reason.kind !== "shutdown" && actor.end === "failed") {
      checkError(simulation, actor, outcome.error?.message);
    }
    if (actor instanceof ModelTurn) simulation.models.checkTurn(actor, work, settled);
    else if (actor instanceof TurnActor) checkTurn(simulation, actor, work, settled);
    else checkCall(simulation, actor, settled);
  }
  if (life.late < late) simulation.violate("G12", `${late} late results were dropped, ${life.late} were noticed.`);
}

/** What it threw while it was being stopped is recorded, unless that was the stop itself. */
function checkError(simulation: CheckedSimulation, actor: Actor, recorded: string | undefined): void {
  if (actor instanceof ModelTurn || actor.threw === recorded) return;
  simulation.violate("G15", `${actor.id} threw "${actor.threw}" while it was stopped; the log has "${recorded}".`);
}

/** It has ended, and nothing it has started keeps it from saying so. */
const isLate = (actor: Actor): boolean =>
  actor.end !== undefined && (actor instanceof TurnActor || actor.processes.pending === 0);

/** Its worker vanished, or set it down: what it knew last is not in its end. */
const isCutOff = (outcome: Outcome): boolean =>
  outcome.kind === "lost" || (outcome.kind === "cancelled" && outcome.reason.kind === "shutdown");

const isAbandoned = (outcome: Outcome): boolean => outcome.kind === "cancelled" && outcome.abandoned !== undefined;

function checkTurn(simulation: CheckedSimulation, actor: TurnActor, work: WorkFacts, settled: Settled): void {
  const { text, usage, outcome } = settled;
  if (text !== undefined && !actor.text.startsWith(text)) {
    simulation.violate("G17", `${actor.id} said "${actor.text}"; the log has "${text}".`);
  }
  if (!actor.metered) return;
  const known = isCutOff(outcome) ? work.meter : actor.usage;
  const counted = isAbandoned(outcome)
    ? usage !== undefined && usage.outputTokens <= actor.usage.outputTokens
    : JSON.stringify(usage) === JSON.stringify(known);
  if (!counted && !(isCutOff(outcome) && usage !== undefined)) {
    simulation.violate("G18", `${actor.id} has cost ${known?.outputTokens}; the log has ${usage?.outputTokens}.`);
  }
}

function checkCall(simulation: CheckedSimulation, actor: CallActor, { outcome, result, changes }: Settled): void {
  if (isCutOff(outcome)) return;
  const same = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);
  const kept =
    outcome.kind === "completed" ? actor.value : (actor.partials.at(-1) ?? leftBy(simulation, actor, result));
  const honest = isAbandoned(outcome)
    ? result === undefined ||
      actor.partials.concat(leftBy(simulation, actor, result) ?? []).some((one) => same(one, result))
    : same(kept, result);
  if (!honest) simulation.violate("G15", `${actor.id} has another result in the log than it had.`);
  const noted = changes ?? [];
  const told = isAbandoned(outcome) ? actor.changes.slice(0, noted.length) : actor.changes;
  if (!same(told, noted)) simulation.violate("G15", `${actor.id} has changed something else than the log says.`);
}

/** What a process of a call had said when both were stopped is kept, if the call has kept nothing itself. */
function leftBy({ facts }: CheckedSimulation, { id }: CallActor, result: Json | undefined): Json | undefined {
  const of = typeof result === "object" && result !== null && "processId" in result ? result.processId : undefined;
  const one = facts.processes.all.get(of as ProcessId);
  // A call that fails while it is stopped leaves one behind, too, but only a cancelled outcome names it.
  if (one?.dyingOf === id) return result;
  return one?.owner === id && one.settled?.outcome.kind === "cancelled" ? result : undefined;
}

/** Whoever was given up has left its place to the next one. */
export function checkPlaces(simulation: CheckedSimulation): void {
  const { actors, release: letGo } = simulation.life;
  if (actors.places.held === 0 || letGo) return;
  for (const { id, plan } of actors.calls) {
    if (actors.places.holds(plan) && simulation.facts.works.get(id)?.settled !== undefined) {
      simulation.violate("G33", `${id} has ended, and keeps its place.`);
    }
  }
}

/** Every call was carried out, unless something stood in its way; and what may go on after a crash has gone on. */
export function checkCalls(simulation: CheckedSimulation): void {
  const { facts, witness, troubles, hooks } = simulation;
  for (const { id, runId, name, settled, cancel, idempotent } of facts.works.values()) {
    if (name === "turn" || settled === undefined) continue;
    const { outcome, at } = settled;
    if (isAbandoned(outcome) && !witness.carriedOut.has(id as CallId)) {
      simulation.violate("G13", `${id} had not begun, and did not hear of its stop.`);
    }
    const isCarriedOut = witness.carriedOut.has(id as CallId);
    if (settled.begun === false && isCarriedOut) {
      simulation.violate("G15", `${id} is recorded as not begun, and it was carried out.`);
    }
    // What may be repeated may have begun in an earlier life.
    const isKnown = outcome.kind === "cancelled" && outcome.reason.kind !== "shutdown" && !idempotent;
    if (isKnown && settled.begun !== false && !isCarriedOut) {
      simulation.violate("G15", `${id} was not carried out, and its record does not say that it had not begun.`);
    }
    if (outcome.kind === "failed" && outcome.code === "unavailable" && troubles === 0 && !hooks) {
      simulation.violate("G25", `${id} was not carried out, and nothing stood in its way.`);
    }
    const repeatable = idempotent && name !== "tool" && cancel === undefined && !isDenied(simulation, id);
    if (!repeatable || !isCutOff(outcome) || isAbandoned(outcome)) continue;
    const log = facts.log(facts.runs.get(runId)?.session ?? "ses_");
    const next = log.slice(at).find((event) => "runId" in event && event.runId === runId && CHANGES.has(event.type));
    if (next?.type === "run.recovered" || next?.type === "run.parked") {
      simulation.violate("G25", `${id} may be repeated, and was given up when its run changed hands.`);
    }
  }
}

const CHANGES: ReadonlySet<string> = new Set([
  "run.recovered",
  "run.parked",
  "run.settled",
  "run.cancel_requested",
  "turn.requested",
]);

const isDenied = ({ facts }: CheckedSimulation, id: Work): boolean =>
  [...facts.questions.values()].some(
    ({ owner, ending }) => owner === id && (ending?.kind === "denied" || ending?.kind === "expired"),
  );
