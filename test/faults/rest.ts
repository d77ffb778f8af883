// The liveness phase: the trouble is over, everybody is let go on, and everything must come to rest by itself.
import type { Outcome } from "../../src/core/model/cancel.ts";
import type { Recorded } from "../../src/core/model/event.ts";
import type { SessionId } from "../../src/core/model/ids.ts";
import { check } from "../oracle/check.ts";
import { CLOSE_EXTRA_MS, CLOSE_LIMIT_MS, type FaultFixture } from "./fault-fixture.ts";
import { evidenceOf, fulfilledValue } from "./tracked-request.ts";

/** Steps from timer to timer. A play at rest needs a few; one that needs more goes round in circles. */
const STEPS_MAX = 200;

/** Brings everything to rest, looks at it, asks for one more run, ends the house. Answers what is broken. */
export async function restAndLook(stage: FaultFixture): Promise<readonly string[]> {
  await comeToRest(stage);
  const found = [...contradictions(stage), ...left(stage)];
  if (found.length > 0) return found;
  const next = [...stage.sessions].filter((session) => canGoOn(stage, session));
  for (const session of next) stage.prompt("say next", {}, session);
  await comeToRest(stage);
  stage.leave();
  await stage.calm();
  const stays = stage.followers.filter(({ end }) => end.state.kind === "pending" && !stage.crashed.has(end.life));
  if (stays.length > 0) found.push(`G33: ${stays.length} followers could not disconnect.`);
  for (const { runId, outcome, accepted } of stage.prompts.slice(stage.prompts.length - next.length)) {
    const kind = fulfilledValue<Outcome>(outcome)?.kind ?? JSON.stringify(accepted.state);
    if (kind !== "completed") found.push(`G28: after the trouble ${runId} came to ${kind}.`);
  }
  const { life } = stage;
  const closed = stage.hold("the last close", life.belay.close({ mode: "cancel", limitMs: CLOSE_LIMIT_MS }));
  await stage.calm();
  if (closed.state.kind === "pending") {
    found.push("G33: a server at rest did not close without waiting.");
    await stage.pass(CLOSE_LIMIT_MS + CLOSE_EXTRA_MS);
  }
  const { unfinished = [] } = fulfilledValue<{ readonly unfinished: readonly string[] }>(closed) ?? {};
  if (unfinished.length > 0) found.push(`G33: a server at rest left ${unfinished.join(", ")} unfinished.`);
  if (life.busyTimers > 0) found.push(`G33: ${life.busyTimers} timers outlive the server.`);
  if (stage.disk.outstanding() > 0) found.push(`G33: ${stage.disk.outstanding()} questions to the store are open.`);
  return [...found, ...contradictions(stage)];
}

/** What the model finds, each in one sentence that begins with the guarantee. */
const contradictions = (stage: FaultFixture): readonly string[] =>
  check(evidenceOf(stage)).map(({ guarantee, message }) => `${guarantee}: ${message}`);

/** One that was never made, or was closed or deleted, has no next prompt. */
function canGoOn({ logs, disk }: FaultFixture, session: SessionId): boolean {
  const log = logs.get(session) ?? [];
  return log.length > 0 && !disk.deleted.has(session) && !log.some(({ type }) => type === "session.closed");
}

async function comeToRest(stage: FaultFixture): Promise<void> {
  for (let step = 0; step < STEPS_MAX; step += 1) {
    await stage.calm();
    stage.gates.openAll();
    for (const child of stage.life.spawner.children) if (child.end === undefined) child.exit();
    await stage.calm();
    if (atRest(stage)) return;
    const [soonest] = stage.clock.pending;
    if (soonest === undefined) return;
    await stage.pass(soonest.inMs);
  }
}

function atRest(stage: FaultFixture): boolean {
  const waiting = stage.requests.some(({ state, life }) => state.kind === "pending" && !stage.crashed.has(life));
  return !waiting && unsettled(stage).length === 0 && left(stage).length === 0;
}

/** Runs and processes that have begun and not ended. */
function unsettled({ logs }: FaultFixture): readonly string[] {
  return [...logs.values()].flatMap((log) => {
    const open = new Set<string>();
    for (const event of log) note(open, event);
    return [...open];
  });
}

function note(open: Set<string>, event: Recorded): void {
  if (event.type === "run.accepted") open.add(event.runId);
  if (event.type === "run.settled") open.delete(event.runId);
  if (event.type === "process.requested") open.add(event.processId);
  if (event.type === "process.settled") open.delete(event.processId);
}

/** What lies about in a house in which nothing is going on. */
export function left({ life, prompts, notices }: FaultFixture): readonly string[] {
  const found: string[] = [];
  for (const lane of life.engine.lanes.all()) {
    const commands = lane.received.length + lane.pending.length + (lane.flight?.entries.length ?? 0);
    if (lane.phase === "loading") found.push(`G33: ${lane.id} is still being loaded.`);
    if (lane.health.kind === "unknown") found.push(`G33: it is still unknown what was written of ${lane.id}.`);
    if (lane.retry !== undefined) found.push(`G33: ${lane.id} still has a timer for its next attempt to write.`);
    if (lane.works.length > 0) found.push(`G33: ${lane.id} still holds ${lane.works.length} pieces of work.`);
    if (commands > 0) found.push(`G33: ${lane.id} still holds ${commands} commands.`);
    const waiters = lane.drained.length + lane.still.length;
    if (waiters > 0) found.push(`G33: ${waiters} callbacks still wait for ${lane.id} to drain or to stop its work.`);
  }
  const { live, waiting } = life.engine.dispatch.load;
  if (live + waiting > 0) found.push(`G33: ${live} places are taken and ${waiting} sessions wait, at rest.`);
  if (life.engine.processes.count > 0) found.push(`G33: ${life.engine.processes.count} processes are left.`);
  if (life.busyTimers > 0) found.push(`G33: ${life.busyTimers} timers are left.`);
  for (const { runId } of prompts) {
    if (life.engine.lanes.sessionOf(runId) !== undefined) found.push(`G33: ${runId} is over and still has a home.`);
  }
  for (const notice of notices) if (notice.type === "bug") found.push(`a bug was noticed: ${String(notice.error)}`);
  return found;
}
