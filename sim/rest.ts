// The second phase of every schedule: faults are over, everybody is answered, and everything must come to rest. Then
// the logs and the house are looked at as a whole.
//
// Invariants
// 1. Takes no choices: what a schedule leaves behind is brought to rest always in the same way.

import { LEASE_TTL_MS } from "../src/core/limits.ts";
import type { SessionId } from "../src/core/model/ids.ts";
import type { QuestionReply } from "../src/core/model/question.ts";
import { takesBeginnings } from "../src/engine/log/health.ts";
import type { CallerHistory } from "../test/oracle/caller-history.ts";
import { check } from "../test/oracle/check.ts";
import { type Actor, TurnActor } from "./actors.ts";
import type { QuestionFacts } from "./facts.ts";
import { historyOf, labelOf } from "./history.ts";
import { checkLeftovers } from "./leftovers.ts";
import { askForUntold, checkProcesses, endProcess, verifyDeath } from "./process-rest.ts";
import type { Simulation } from "./simulation.ts";
import { checkStates, checkStatus } from "./status.ts";
import { checkCalls, checkPlaces, checkWorks } from "./works.ts";

/** Far more steps than any schedule needs; whoever uses them up goes round in circles. */
const STEPS_MAX = 2_000;
/** G24: how long a session may be left to a worker that is gone, with nothing going on but the renewal of leases. */
const IDLE_MS_MAX = LEASE_TTL_MS + 2_000;

const LATE_LIMIT_MS = 500;

export async function comeToRest(simulation: Simulation): Promise<void> {
  simulation.trace.note("rest");
  simulation.clients.bringBack();
  // A limit for the store that came late, because the time had jumped, begins again a little later.
  const { silentUntil, clock } = simulation;
  if (silentUntil > 0) simulation.silentUntil = Math.max(silentUntil, clock.elapsed() + LATE_LIMIT_MS);
  let idleSince: number | undefined;
  for (let step = 0; step < STEPS_MAX; step += 1) {
    await simulation.drain();
    checkPlaces(simulation);
    checkStatus(simulation);
    if (simulation.violations.length > 0) return;
    if (await settleSomething(simulation)) continue;
    const over = isOver(simulation);
    const isSilent = simulation.clock.elapsed() < simulation.silentUntil;
    if (over && !isSilent && askForUntold(simulation)) continue;
    if (simulation.life.busyTimers === 0 && verifyDeath(simulation)) continue;
    const silent = isSilent || isRefusing(simulation);
    if (over && !silent) checkTimers(simulation);
    if (simulation.clock.pending.length === 0 || (over && simulation.life.busyTimers === 0 && !silent)) break;
    idleSince = simulation.life.busyTimers > 0 ? undefined : (idleSince ?? simulation.clock.elapsed());
    simulation.tick();
    if (idleSince !== undefined && simulation.clock.elapsed() - idleSince > IDLE_MS_MAX) break;
  }
  if (simulation.violations.length > 0) return;
  const { clients, life } = simulation;
  const history = historyOf(clients.asked, clients.followers, life.number);
  await clients.leaveAll(() => simulation.drain());
  checkHistory(simulation, history);
  lookAtEverything(simulation);
}

/** A session whose log cannot be written now: some time has to pass first. */
function isRefusing({ life }: Simulation): boolean {
  const { lanes, clock } = life.engine;
  return (
    life.phase === "open" &&
    [...lanes.all()].some((lane) => lane.phase === "ready" && !takesBeginnings(lane.health, clock.elapsed()))
  );
}

/** One step towards rest that needs no time; false if there is none. */
async function settleSomething(simulation: Simulation): Promise<boolean> {
  const { life } = simulation;
  const parked = life.store.parked[0];
  if (parked !== undefined) {
    simulation.answer(parked);
    return true;
  }
  if (life.report !== undefined) {
    await simulation.restartAfterClose();
    return true;
  }
  const follower = simulation.clients.followers.find((one) => one.life === life.number && !one.waiting && !one.ended);
  if (follower !== undefined) {
    simulation.clients.pull(follower);
    return true;
  }
  const [hook] = life.host.waiting;
  if (hook !== undefined) {
    life.host.say(hook, "nothing");
    return true;
  }
  if (endProcess(simulation)) return true;
  const actor = nextToEnd(life.actors.going, simulation);
  if (actor !== undefined) {
    endActor(simulation, actor);
    return true;
  }
  return answerSomething(simulation);
}

/** Whoever is in a hurry lets the time run out; the others get an answer. */
const HASTY_MAX_MS = 60_000;

function answerSomething(simulation: Simulation): boolean {
  const { facts, clients, life } = simulation;
  const pending = new Set<string>();
  for (const record of clients.asked) {
    const waits = record.life === life.number && record.refused === undefined && record.receipt === undefined;
    if (record.kind === "answer" && waits) pending.add(record.questionId);
  }
  for (const question of facts.questions.values()) {
    if (question.ending !== undefined || (question.deadlineMs ?? 0) < HASTY_MAX_MS) continue;
    if (life.phase !== "open" || pending.has(question.id)) continue;
    // A session whose log cannot be written refuses it until some time has passed.
    const lane = life.engine.lanes.peek(question.session);
    if (lane !== undefined && !life.engine.commit.takesCommands(lane)) continue;
    clients.answer(question.session, question.id, replyTo(question));
    return true;
  }
  return false;
}

function replyTo({ id, about }: QuestionFacts): QuestionReply {
  if (about.kind === "question") return { kind: "answered", value: about.options?.[0] ?? "rest" };
  return { kind: Number(id.at(-1)) % 2 === 0 ? "denied" : "allowed" };
}

/** Those that do not heed a cancel end only after they were given up: late, and to no effect. */
function nextToEnd(going: readonly Actor[], simulation: Simulation): Actor | undefined {
  const { works, runs } = simulation.facts;
  const stops = (actor: Actor): boolean =>
    actor.aborted || works.get(actor.id)?.cancel !== undefined || runs.get(actor.runId)?.cancel !== undefined;
  // Whoever has asked something waits for the answer, or for time to pass.
  const stays = (actor: Actor): boolean =>
    actor.asks > 0 || !actor.movable || (actor.stubborn && stops(actor) && works.get(actor.id)?.settled === undefined);
  const calls = going.filter((actor) => !(actor instanceof TurnActor) && !stays(actor));
  return (
    calls[0] ??
    going.find((actor) => actor instanceof TurnActor && !stays(actor) && actor.waitsFor === 0) ??
    going.find((actor) => !stays(actor))
  );
}

function endActor(simulation: Simulation, actor: Actor): void {
  simulation.trace.note(`end ${actor.id}`);
  if (actor.aborted && !actor.stubborn) actor.fail();
  else if (actor instanceof TurnActor) actor.complete("end");
  else actor.complete();
}

/**
 * What a timer was set for is over. After trouble with the store, some look once more whether it has passed; and a
 * process that was given up takes what time it takes to die.
 */
function checkTimers(simulation: Simulation): void {
  const { life, troubles, world } = simulation;
  if (troubles === 0 && life.busyTimers > 0 && world.going.length === 0) {
    simulation.violate("G33", `${life.busyTimers} timers are left, and nothing is going on.`);
  }
}

function isOver(simulation: Simulation): boolean {
  const answered = simulation.clients.asked.every(
    (record) => record.life !== simulation.life.number || record.refused !== undefined || record.receipt !== undefined,
  );
  const { sessions, facts } = simulation;
  const ended = [...facts.processes.all.values()].every(({ settled }) => settled !== undefined);
  return answered && ended && sessions.every((session) => facts.open(session).length === 0);
}

/** What clients were answered, and the logs themselves, against the contract. */
function checkHistory(simulation: Simulation, history: CallerHistory): void {
  // That the store had not failed is checked for each answer.
  const { facts, witness } = simulation;
  const evidence = { history, logs: facts.logs, effects: witness.effects, labelOf, storeFails: true, complete: true };
  for (const { guarantee, message } of check(evidence)) simulation.violate(guarantee, message);
}

function lookAtEverything(simulation: Simulation): void {
  checkWorks(simulation);
  checkCalls(simulation);
  checkProcesses(simulation);
  simulation.models.atRest();
  checkFairness(simulation);
  checkStates(simulation);
  checkLeftovers(simulation);
}

/** With one slot, a prompt does not pass another session that waited with a run when it was asked. */
function checkFairness(simulation: Simulation): void {
  const { facts, clients, slots, lives, life } = simulation;
  if (slots !== 1 || lives > 1 || life.faults > 0) return;
  // A session with cancels may have had its turn with a run that ended before its start was durable.
  const cancelled = new Set<SessionId>();
  for (const run of facts.runs.values()) if (run.outcome?.kind === "cancelled") cancelled.add(run.session);
  for (const prompt of clients.prompts) {
    const started = facts.starts.findIndex((start) => start.run === prompt.runId);
    const between = facts.starts.slice(prompt.startsBefore, Math.max(0, started));
    for (const { id, session } of started === -1 ? [] : prompt.waitingElsewhere) {
      if (!cancelled.has(session) && !between.some((start) => start.session === session)) {
        simulation.violate("G4", `${session} waited with ${id}, and ${prompt.runId} of ${prompt.session} passed it.`);
      }
    }
  }
}
