// A run that is live: one accepted prompt, from start to outcome. (Before its start it is an entry of the lane's queue;
// after its outcome only the log knows it.)
//
// Invariants
// 1. A run settles only when it owns nothing. This is our structured concurrency, and it is durable.
// 2. The first cancel reason wins.
// 3. A live run owns at least one piece of work, unless it is parked.
import { Bug } from "./bug.ts";
import { type Call, evolveCall } from "./call.ts";
import type { CancelReason, Outcome } from "./cancel.ts";
import type { CallEvent, RunEvent, TurnEvent } from "./event.ts";
import { ordinalOf, type RunId, type Seq, type TurnId } from "./ids.ts";
import type { Prompt } from "./prompt.ts";

interface Base {
  readonly id: RunId;
  readonly prompt: Prompt;
  readonly acceptedAt: Seq;
  readonly key: string | undefined;
  readonly content: string | undefined;
  /** How many workers it has seen vanish, and the one it has now. */
  readonly attempt: number;
  /** How often it was taken up again: after those, and after shutdowns that parked it. */
  readonly recoveries: number;
  /** Steers taken in for the turn that is asked for now; kept until a turn that had them completes. */
  readonly taken: readonly Prompt[];
  /** Turns and calls asked for so far: the source of their ids. */
  readonly turns: number;
  readonly calls: number;
  /** What it owns: at most one turn, and any number of calls. */
  readonly turn: TurnId | undefined;
  readonly live: readonly Call[];
}

export type Run = Running | Ending | Stopping | Parked;

export type Running = Base & { readonly phase: "running" };
/** Its last turn has ended like this; calls nobody waits for any more are being stopped. */
export type Ending = Base & { readonly phase: "ending"; readonly outcome: Outcome };
export type Stopping = Base & {
  readonly phase: "stopping";
  readonly reason: CancelReason;
  readonly since: Seq;
  readonly abandoned: readonly string[];
};
export type Parked = Base & { readonly phase: "parked" };

export type LiveEvent = Exclude<RunEvent, { type: "run.started" | "run.settled" }> | TurnEvent | CallEvent;

/** What the log says happened next. Trusts the log; a log that contradicts itself is a bug, not a case. */
export function evolveRun(run: Run, event: LiveEvent, seq: Seq): Run {
  switch (event.type) {
    case "run.cancel_requested":
      return { ...base(run), phase: "stopping", reason: event.reason, since: seq, abandoned: [] };
    case "run.parked":
      return { ...base(run), phase: "parked" };
    case "run.recovered":
      return { ...base(run), phase: "running", attempt: event.attempt, recoveries: run.recoveries + 1 };
    case "turn.requested":
      return { ...run, turn: event.turnId, turns: run.turns + 1 };
    case "turn.extended":
      return run;
    case "turn.settled":
      return settleTurn(run, event);
    case "call.requested":
      return {
        ...run,
        calls: ordinalOf(event.callId),
        live: [...run.live, { phase: "running", id: event.callId, name: event.name }],
      };
    case "call.cancel_requested":
    case "call.settled":
      return evolveCalls(run, event, seq);
  }
}

/** What outlives a change of phase. Nothing of an ending or a stop is carried into another phase. */
function base(run: Run): Base {
  const { id, prompt, acceptedAt, key, content, attempt, recoveries, taken, turns, calls, turn, live } = run;
  return { id, prompt, acceptedAt, key, content, attempt, recoveries, taken, turns, calls, turn, live };
}

function settleTurn(run: Run, event: Extract<TurnEvent, { type: "turn.settled" }>): Run {
  if (run.turn !== event.turnId) throw new Bug(`${event.turnId} settled, but ${run.id} owns ${run.turn ?? "no turn"}`);
  const rest = { ...run, turn: undefined, taken: event.outcome.kind === "completed" ? NOTHING_TAKEN : run.taken };
  if (rest.phase !== "running") return noteAbandoned(rest, "turn", event.outcome);
  // With calls left over, the run's outcome is known and waits for them.
  return event.next === "end" && rest.live.length > 0 ? { ...rest, phase: "ending", outcome: event.outcome } : rest;
}

function evolveCalls(run: Run, event: Exclude<CallEvent, { type: "call.requested" }>, seq: Seq): Run {
  const live: Call[] = [];
  for (const call of run.live) {
    const next = call.id === event.callId ? evolveCall(call, event, seq) : call;
    if (next !== undefined) live.push(next);
  }
  const after = { ...run, live };
  if (event.type !== "call.settled") return after;
  const name = run.live.find((call) => call.id === event.callId)?.name ?? event.callId;
  return noteAbandoned(after, name, event.outcome);
}

/** A run's outcome names what did not stop when it was asked to. */
function noteAbandoned(run: Run, name: string, outcome: Outcome): Run {
  if (run.phase !== "stopping" || outcome.kind !== "cancelled" || outcome.abandoned === undefined) return run;
  return { ...run, abandoned: [...run.abandoned, name] };
}

export const NOTHING_TAKEN: readonly Prompt[] = [];
