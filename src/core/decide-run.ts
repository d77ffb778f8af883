// The whole policy of a live run, on one screen. No clock, no promise, no I/O.
import { Bug } from "./bug.ts";
import { cancelCall } from "./call.ts";
import type { CancelReason, CancelReceipt, Outcome } from "./cancel.ts";
import type { Event, Next, Usage } from "./event.ts";
import { type CallId, type Seq, type TurnId, turnId } from "./ids.ts";
import { ATTEMPTS_MAX, CALLS_LIVE_MAX } from "./limits.ts";
import type { Json } from "./prompt.ts";
import type { Run } from "./run.ts";

/** How a turn or call ended, as the world reports it. */
export interface TurnEnd {
  readonly turnId: TurnId;
  readonly outcome: Outcome;
  readonly next: Next;
  readonly text: string;
  readonly usage?: Usage;
}

export interface CallEnd {
  readonly callId: CallId;
  readonly outcome: Outcome;
  readonly result?: Json;
}

/** Whether a run cut off by a crash is taken up again, or ends as lost. */
export type Resume = "resume" | "lose";

export function cancelRun(run: Run, reason: CancelReason, next: Seq): Decided<CancelReceipt> {
  switch (run.phase) {
    case "running":
    case "ending":
      return {
        events: [{ type: "run.cancel_requested", runId: run.id, reason }],
        answer: { kind: "stopping", since: next, first: true },
      };
    case "stopping": // The first reason wins.
      return { events: [], answer: { kind: "stopping", since: run.since, first: false } };
    case "parked": // Nothing of it is going on anywhere, so there is nothing to wait for.
      return {
        events: [
          { type: "run.cancel_requested", runId: run.id, reason },
          { type: "run.settled", runId: run.id, outcome: { kind: "cancelled", reason } },
        ],
        answer: { kind: "stopping", since: next, first: true },
      };
  }
}

export function cancelOneCall(run: Run, callId: CallId, reason: CancelReason, next: Seq): Decided<CancelReceipt> {
  const call = run.live.find((one) => one.id === callId);
  if (call === undefined) return { events: [], answer: { kind: "unknown" } };
  // A call of a run that is being stopped is being stopped with it, unless it was stopped before.
  if (run.phase === "stopping" && call.phase === "running")
    return { events: [], answer: { kind: "stopping", since: run.since, first: false } };
  return cancelCall(run.id, call, reason, next);
}

/** Undefined: the run asks for nothing new any more (it is being stopped, or has too much going on). */
export function requestCall(run: Run, callId: CallId, name: string, input: Json): readonly Event[] | undefined {
  if (run.live.some((call) => call.id === callId)) return []; // Its answer was lost, and it is asked again.
  if (run.phase !== "running" || run.turn === undefined || run.live.length >= CALLS_LIVE_MAX) return undefined;
  return [{ type: "call.requested", runId: run.id, callId, name, input }];
}

export function settleTurn(run: Run, end: TurnEnd): readonly Event[] {
  if (run.turn !== end.turnId) return []; // A late echo of something already settled.
  const { turnId: id, ...rest } = end;
  const settled: Event = { type: "turn.settled", runId: run.id, turnId: id, ...rest };
  if (run.live.length > 0) return [settled];
  if (run.phase === "running" && end.next === "turn") return [settled, nextTurn(run)];
  return [settled, runSettled(run, end.outcome, "turn")];
}

export function settleCall(run: Run, end: CallEnd): readonly Event[] {
  const call = run.live.find((one) => one.id === end.callId);
  if (call === undefined) return []; // A late echo, or of an abandoned call.
  const settled: Event = { type: "call.settled", runId: run.id, ...end };
  if (run.turn !== undefined || run.live.length > 1) return [settled];
  if (run.phase === "running") return [settled, nextTurn(run)];
  return [settled, runSettled(run, end.outcome, call.name)];
}

/** Said by a worker that takes over: what was going on is not ours, may have had effects, and is never begun again. */
export function recoverRun(run: Run, resume: Resume): readonly Event[] {
  const lost = abandonAll(run, { kind: "lost" });
  const settle = (outcome: Outcome): Event => ({ type: "run.settled", runId: run.id, outcome });
  switch (run.phase) {
    case "stopping":
      return [...lost, settle(cancelled(run.reason, run.abandoned))];
    case "ending":
      return [...lost, settle(uncancelled(run.outcome))];
    case "parked":
      return [{ type: "run.recovered", runId: run.id, attempt: run.attempt }, nextTurn(run)];
    case "running":
      if (resume === "lose") return [...lost, settle({ kind: "lost" })];
      if (run.attempt >= ATTEMPTS_MAX) return [...lost, settle(crashLoop(run.attempt))];
      return [...lost, { type: "run.recovered", runId: run.id, attempt: run.attempt + 1 }, nextTurn(run)];
  }
}

/** Sets a run down for a later worker. What had not ended by itself has been stopped by now, or abandoned. */
export function parkRun(run: Run): readonly Event[] {
  if (run.phase !== "running") return [];
  return [
    ...abandonAll(run, { kind: "cancelled", reason: { kind: "shutdown" } }),
    { type: "run.parked", runId: run.id },
  ];
}

function abandonAll(run: Run, outcome: Outcome): readonly Event[] {
  const events: Event[] = run.live.map((call) => ({ type: "call.settled", runId: run.id, callId: call.id, outcome }));
  if (run.turn !== undefined) {
    events.push({ type: "turn.settled", runId: run.id, turnId: run.turn, outcome, next: "turn" });
  }
  return events;
}

/** The run's outcome, once its last work has ended like `last`. Decided by what was recorded, never by a text. */
function runSettled(run: Run, last: Outcome, name: string): Event {
  return { type: "run.settled", runId: run.id, outcome: outcomeOf(run, last, name) };
}

function outcomeOf(run: Run, last: Outcome, name: string): Outcome {
  switch (run.phase) {
    case "stopping":
      return cancelled(run.reason, didNotStop(last) ? [...run.abandoned, name] : run.abandoned);
    case "ending":
      return uncancelled(run.outcome);
    case "running":
      return uncancelled(last);
    case "parked":
      throw new Bug(`${run.id} is parked and owns nothing that could settle`);
  }
}

const nextTurn = (run: Run): Event => ({
  type: "turn.requested",
  runId: run.id,
  turnId: turnId(run.id, run.turns + 1),
});

const didNotStop = (outcome: Outcome): boolean => outcome.kind === "cancelled" && outcome.abandoned !== undefined;

function cancelled(reason: CancelReason, abandoned: readonly string[]): Outcome {
  return abandoned.length === 0 ? { kind: "cancelled", reason } : { kind: "cancelled", reason, abandoned };
}

/** Nobody cancelled this run, so it is not cancelled, whatever its work says of itself. */
const uncancelled = (last: Outcome): Outcome =>
  last.kind === "completed" || last.kind === "failed" ? last : stoppedByItself;

const stoppedByItself: Outcome = {
  kind: "failed",
  code: "turn_stopped",
  message: "The turn ended as cancelled, but nobody had cancelled it.",
};

const crashLoop = (attempts: number): Outcome => ({
  kind: "failed",
  code: "crash_loop",
  message: `Its worker vanished ${attempts} times while it ran. It is not started again.`,
});

/** Facts, and what to tell whoever asked. An empty list of facts is an answer: nothing changes. */
export interface Decided<A> {
  readonly events: readonly Event[];
  readonly answer: A;
}
