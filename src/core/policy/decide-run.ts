// The policy of a live run. No clock, no promise, no I/O.
import { Bug } from "../bug.ts";
import { ATTEMPTS_MAX, CALLS_LIVE_MAX } from "../limits.ts";
import { type Call, type CallAsk, cancelCall, type Stop } from "../model/call.ts";
import type { CancelReason, CancelReceipt, Failure, Outcome } from "../model/cancel.ts";
import type { Event, ModelName, Next, TurnFinish, TurnPart, Usage } from "../model/event.ts";
import {
  type CallId,
  type ProcessId,
  type QuestionId,
  runOf,
  type Seq,
  type TurnId,
  turnId,
  type Work,
} from "../model/ids.ts";
import { reminder } from "../model/inbox.ts";
import type { MemoChange } from "../model/memo.ts";
import type { Json } from "../model/prompt.ts";
import type { Question } from "../model/question.ts";
import { NO_QUESTIONS, type Run, type Stopping } from "../model/run.ts";
import { settledRun, textOf } from "../read/run-end.ts";

/** How a turn ended, as its worker reports it. */
export interface TurnEnd {
  readonly turnId: TurnId;
  readonly outcome: Outcome;
  readonly next: Next;
  readonly text: string;
  readonly usage?: Usage;
  readonly model?: ModelName;
  readonly finish?: TurnFinish;
  readonly parts?: readonly TurnPart[];
  /** The calls it requests before the next turn. */
  readonly calls?: readonly CallAsk[];
  /** Processes whose results it received. Counts only if the turn completes. */
  readonly heard?: readonly ProcessId[];
}

export interface CallEnd {
  readonly callId: CallId;
  readonly outcome: Outcome;
  /** It ended without having begun. */
  readonly begun?: false;
  readonly result?: Json;
  readonly changes?: readonly string[];
  /** Processes whose results it returns. Counts only if the call completes. */
  readonly heard?: readonly ProcessId[];
}

/** Whether a run that a crash cut off is continued, or ends as lost. */
export type Resume = "resume" | "lose";

// @fault call-cancel-stops-the-run:run
export function cancelRun(run: Run, reason: CancelReason, next: Seq): Decided<CancelReceipt> {
  switch (run.phase) {
    case "running":
    case "ending":
      return {
        // @fault approval-outlives-its-run
        events: [{ type: "run.cancel_requested", runId: run.id, reason }, ...withdrawAll(run, reason)],
        answer: { kind: "stopping", since: next, first: true },
      };
    case "stopping": // The first reason wins.
      // @fault second-reason-overwrites
      return { events: [], answer: { kind: "stopping", since: run.since, first: false } };
    case "parked": // Nothing of it is running, so there is nothing to wait for.
      return {
        events: [
          { type: "run.cancel_requested", runId: run.id, reason },
          ...withdrawAll(run, reason),
          ...abandon({ ...run, questions: NO_QUESTIONS }, run.live, { kind: "cancelled", reason }),
          settledRun(run, { kind: "cancelled", reason }),
        ],
        answer: { kind: "stopping", since: next, first: true },
      };
  }
}

export function cancelOneCall(run: Run, callId: CallId, stop: Stop, next: Seq): Decided<CancelReceipt> {
  const call = run.live.find((one) => one.id === callId); // @fault call-cancel-hits-a-sibling
  if (call === undefined) return { events: [], answer: { kind: "unknown" } };
  // A call of a stopping run is stopping with it, unless it was stopped before.
  if (run.phase === "stopping" && call.phase === "running")
    return { events: [], answer: { kind: "stopping", since: run.since, first: false } };
  const known: Stop = isUnbegun(run, call) ? { ...stop, begun: false } : stop;
  const { events, answer } = cancelCall(run.id, call, known, next); // @fault call-cancel-stops-the-run
  if (events.length === 0) return { events, answer };
  const stopped = [...events, ...withdraw(run, callId, stop.reason)]; // @fault approval-outlives-its-call
  return { events: run.phase === "parked" ? [...stopped, ...stoppedNow(run, call, known)] : stopped, answer };
}

/** A parked run has kept only calls that may be repeated, and calls that had not begun. */
const isUnbegun = (run: Run, call: Call): boolean => run.phase === "parked" && call.idempotent !== true;

/** Nothing of a parked run is running, so no worker would report the call's end. */
function stoppedNow(run: Run, call: Call, { reason, remind, begun }: Stop): readonly Event[] {
  const known = begun === false ? { begun } : {};
  const stopping: Call = { ...call, phase: "stopping", reason, since: 0, remind, ...known };
  return abandon({ ...run, questions: NO_QUESTIONS }, [stopping], { kind: "cancelled", reason });
}

/** Undefined: the run takes no new call (it is being stopped, or has too many live calls). */
export function requestCall(run: Run, ask: CallAsk): readonly Event[] | undefined {
  if (run.live.some((call) => call.id === ask.callId)) return []; // A retry: the answer was lost.
  if (run.phase !== "running" || run.turn === undefined || run.live.length >= CALLS_LIVE_MAX) return undefined;
  return [{ type: "call.requested", runId: run.id, ...ask }];
}

/** The refusal of a call that the run does not take. */
export function refuseCall(
  run: Run | undefined,
  callId: CallId,
): { readonly kind: "refused"; readonly code: "busy" | "overloaded"; readonly message: string } {
  if (run?.phase !== "running" || run.turn === undefined) {
    return { kind: "refused", code: "busy", message: `${runOf(callId)} begins no new calls.` };
  }
  const bound = `A run may have ${CALLS_LIVE_MAX} live calls, and ${run.id} has as many: ${callId} was not begun.`;
  return { kind: "refused", code: "overloaded", message: `${bound} Wait until one has ended, then make it again.` };
}

export function settleTurn(run: Run, end: TurnEnd): readonly Event[] {
  if (run.turn !== end.turnId) return []; // A late report of a turn that was settled.
  const { turnId: id, calls, heard, ...rest } = end;
  const { usage = run.meter, model = run.model } = end;
  const cost = { ...(usage === undefined ? {} : { usage }), ...(model === undefined ? {} : { model }) };
  // What a turn has received counts only if it completed; otherwise the next turn receives it.
  const received = heard === undefined || end.outcome.kind !== "completed" ? {} : { heard };
  const settled: Event = { type: "turn.settled", runId: run.id, turnId: id, ...rest, ...cost, ...received };
  const continues = run.phase === "running" && end.next === "turn";
  // If this is the last turn, the calls that are left are stopped, and their questions are withdrawn.
  // @fault approval-outlives-its-turn
  const over = continues ? withdraw(run, id, { kind: "parent", id }) : withdrawAll(run, { kind: "parent", id });
  const before = [...over, settled];
  // Nothing new begins once a stop is recorded: the calls of a stopped turn are not requested.
  const asked = continues ? requestedCalls(run, calls ?? []) : []; // @fault end-calls-asked-while-stopping
  if (run.live.length > 0 || asked.length > 0) return [...before, ...asked]; // @fault run-ends-before-its-calls
  if (continues) return [...before, nextTurn(run)]; // @fault next-turn-after-the-cancel
  const ended = { ...run, last: textOf(id, end.text) };
  return [...before, runSettled(ended, end.outcome, "turn", errorOf(end.outcome))]; // @fault two-outcomes
}

/** Every call that a model requests has one result: calls above the limit are requested, and fail at once. */
function requestedCalls(run: Run, calls: readonly CallAsk[]): readonly Event[] {
  const surplus = calls.slice(CALLS_LIVE_MAX - run.live.length);
  return [
    ...calls.map((ask): Event => ({ type: "call.requested", runId: run.id, ...ask })),
    ...surplus.map(({ callId }): Event => ({ type: "call.settled", runId: run.id, callId, outcome: TOO_MANY })),
  ];
}

export function settleCall(run: Run, end: CallEnd): readonly Event[] {
  const call = run.live.find((one) => one.id === end.callId);
  // A late report, or one of an abandoned call. A call that a parked run has kept is not running: it will be begun
  // again.
  if (call === undefined || run.phase === "parked") return []; // @fault late-result-applied:recorded
  const settled = settledCall(run, call, end);
  if (run.turn !== undefined || run.live.length > 1) return settled; // @fault next-turn-before-the-last-call
  if (run.phase === "running") return [...settled, nextTurn(run)]; // @fault next-turn-never-asked-for
  return [...settled, runSettled(run, end.outcome, call.name)];
}

/**
 * For a worker that takes over: the previous worker's work may have had effects, so it is not begun again. Exceptions
 * are calls that may be repeated, and calls that waited for an approval and so have done nothing.
 */
export function recoverRun(run: Run, resume: Resume): readonly Event[] {
  const lost = abandonAll(run, { kind: "lost" });
  // @fault stop-forgotten-by-recovery:next, next-turn-beside-survivors
  const next = run.live.some((call) => canBeginAgain(run, call)) ? [] : [nextTurn(run)];
  const settle = (outcome: Outcome): Event => settledRun(run, outcome);
  switch (run.phase) {
    case "stopping":
      // @fault stop-forgotten-by-recovery, stopping-run-lost, two-outcomes:recovery
      return [...lost, settle(cancelled(run, run.abandoned, run.error))];
    case "ending":
      return [...lost, settle(uncancelled(run.outcome))];
    case "parked":
      // @fault parked-run-lost
      return [...cutOff(run, SHUTDOWN), { type: "run.recovered", runId: run.id, attempt: run.attempt }, ...next];
    case "running":
      if (resume === "lose") return [...lost, settle({ kind: "lost" })];
      if (run.attempt >= ATTEMPTS_MAX) return [...lost, settle(crashLoop(run.attempt))]; // @fault crash-loop-unlimited
      return [
        ...cutOff(run, { kind: "lost" }), // @fault open-calls-not-closed, outcome-guessed-by-recovery
        { type: "run.recovered", runId: run.id, attempt: run.attempt + 1 }, // @fault attempts-never-counted
        ...next,
      ];
  }
}

/** Suspends a run for a later worker. By now its work has ended, was stopped or was abandoned. */
export function parkRun(run: Run): readonly Event[] {
  if (run.phase !== "running") return [];
  return [...cutOff(run, SHUTDOWN), { type: "run.parked", runId: run.id }];
}

function canBeginAgain(run: Run, call: Call): boolean {
  if (call.phase !== "running" || call.byEnd !== true || isDenied(call)) return false;
  if (call.idempotent === true) return true; // @fault unsafe-call-begun-again, safe-call-not-begun-again
  // A call that waits for an approval has not begun; nor has one that was approved while its run had no worker.
  return (
    run.questions.some((one) => one.owner === call.id && isApproval(one)) ||
    (run.phase === "parked" && call.verdict?.allowed === true)
  );
}

/**
 * Ends everything except calls that can be begun again. These keep their approvals; their other questions are
 * withdrawn, and will be asked again.
 */
function cutOff(run: Run, outcome: Outcome): readonly Event[] {
  const kept = run.live.filter((call) => canBeginAgain(run, call));
  const moot = run.questions.filter((one) => kept.some((call) => call.id === one.owner) && !isApproval(one));
  return [
    // @fault question-of-a-vanished-asker
    ...moot.flatMap(({ id, owner }) => withdrawn(run, id, { kind: "parent", id: owner })),
    ...abandonAll({ ...run, live: run.live.filter((call) => !kept.includes(call)) }, outcome),
  ];
}

const isApproval = ({ about }: Question): boolean => about.kind === "approval";
const isDenied = (call: Call): boolean => call.verdict?.allowed === false;

function abandonAll(run: Run, outcome: Outcome): readonly Event[] {
  const events = [...abandon(run, run.live, outcome)];
  if (run.turn !== undefined) {
    const { turn, meter } = run;
    const cost = meter === undefined ? {} : { usage: meter }; // @fault usage-lost-with-the-worker
    const asked = run.model === undefined ? {} : { model: run.model };
    events.push(...withdraw(run, turn, { kind: "parent", id: turn }));
    events.push({ type: "turn.settled", runId: run.id, turnId: turn, outcome, next: "turn", ...cost, ...asked });
  }
  return events;
}

function abandon(run: Run, calls: readonly Call[], outcome: Outcome): readonly Event[] {
  return calls.flatMap((call) => {
    // A denied call has not begun: that is known even if its worker vanished.
    const denied = call.phase === "running" && isDenied(call);
    const end = { callId: call.id, outcome: denied ? DENIED : outcome };
    // @fault no-reminder-after-a-crash
    return settledCall(run, call, isUnbegun(run, call) ? { ...end, begun: false } : end);
  });
}

/** How a call ended that was stopped before it began is known even if its worker vanished. */
const endOf = (call: Call, end: CallEnd): CallEnd =>
  call.phase === "stopping" && call.begun === false
    ? { callId: call.id, outcome: { kind: "cancelled", reason: call.reason }, begun: false }
    : end;

/** The end of a call: its questions end with it, and the model is reminded if it was stopped with `remind`. */
function settledCall(run: Run, call: Call, reported: CallEnd): readonly Event[] {
  const end = endOf(call, reported);
  const { heard, begun, ...rest } = end;
  const stopped = end.outcome.kind === "cancelled" || end.outcome.kind === "lost";
  const unbegun = stopped && begun === false ? { begun } : {};
  // @fault heard-by-a-call-that-failed, heard-not-recorded
  const returned = heard === undefined || end.outcome.kind !== "completed" ? {} : { heard };
  const events: Event[] = [
    ...withdraw(run, call.id, { kind: "parent", id: call.id }),
    { type: "call.settled", runId: run.id, ...rest, ...unbegun, ...returned },
  ];
  // Not if it finished before the stop: then its result stands, and no reminder is needed.
  // @fault reminded-of-what-finished, reminded-unasked
  if (call.phase === "stopping" && call.remind && stopped) {
    events.push({ type: "inbox.added", item: reminder(call.id, call.name, call.reason) });
  }
  return events;
}

/** Withdraws the open questions of one turn or call. */
function withdraw(run: Run, owner: Work, reason: CancelReason): readonly Event[] {
  return withdrawAll({ ...run, questions: run.questions.filter((one) => one.owner === owner) }, reason);
}

function withdrawAll(run: Run, reason: CancelReason): readonly Event[] {
  return run.questions.flatMap(({ id }) => withdrawn(run, id, reason));
}

function withdrawn(run: Run, questionId: QuestionId, reason: CancelReason): readonly Event[] {
  return [{ type: "question.settled", runId: run.id, questionId, ending: { kind: "withdrawn", reason } }];
}

/**
 * The run's outcome, once its last work has ended with `last`. Derived from what was recorded, never from a text.
 * `error`: what its turn threw while it was being stopped. The error of a call stays with the call.
 */
function runSettled(run: Run, last: Outcome, name: string, error?: Failure): Event {
  return settledRun(run, outcomeOf(run, last, name, error));
}

function outcomeOf(run: Run, last: Outcome, name: string, error: Failure | undefined): Outcome {
  switch (run.phase) {
    case "stopping":
      // @fault abandoned-not-named, cancel-is-a-failure
      return cancelled(run, didNotStop(last) ? [...run.abandoned, name] : run.abandoned, error ?? run.error);
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

const errorOf = (last: Outcome): Failure | undefined => (last.kind === "cancelled" ? last.error : undefined);

function cancelled({ reason }: Stopping, abandoned: readonly string[], error: Failure | undefined): Outcome {
  const named = abandoned.length === 0 ? {} : { abandoned };
  return { kind: "cancelled", reason, ...named, ...(error === undefined ? {} : { error }) };
}

/** This run was not cancelled, so its outcome is not `cancelled`, whatever its work reports. */
const uncancelled = (last: Outcome): Outcome =>
  last.kind === "completed" || last.kind === "failed" ? last : stoppedByItself;

const stoppedByItself: Outcome = {
  kind: "failed",
  code: "turn_stopped",
  message: "The turn ended as cancelled, but was not cancelled.",
};

const SHUTDOWN: Outcome = { kind: "cancelled", reason: { kind: "shutdown" } };

const DENIED: Outcome = { kind: "failed", code: "denied", message: "Not carried out: it was not approved." };

const TOO_MANY: Outcome = {
  kind: "failed",
  code: "too_many_calls",
  message: `Not carried out: more than ${CALLS_LIVE_MAX} calls would be live.`,
};

const crashLoop = (attempts: number): Outcome => ({
  kind: "failed",
  code: "crash_loop",
  message: `Its worker vanished ${attempts} times while it ran. It is not started again.`,
});

/** The events of a command, and its answer. Without events, the command changes nothing. */
export interface Decided<A> {
  readonly events: readonly Event[];
  /** Memo changes, written atomically with the events. */
  readonly memos?: readonly MemoChange[];
  readonly answer: A;
}
