// A live run: one accepted prompt, from start to outcome. (Before its start it is an entry of the lane's queue; after
// its outcome it is only in the log.) ARCHITECTURE.md has a diagram of all phases.
//
// Invariants
// 1. A run settles only when it owns nothing. This is structured concurrency, made durable.
// 2. The first cancel reason wins.
// 3. A live run owns at least one piece of work, unless it is parked.
// 4. A question is open only while the work that asked it is live.
import { Bug } from "../bug.ts";
import { beginText, extendText, type TurnText, textOf } from "../read/run-end.ts";
import { type Call, evolveCall } from "./call.ts";
import type { CancelReason, Failure, Outcome } from "./cancel.ts";
import type { CallEvent, ModelName, QuestionEvent, RunEvent, TurnEvent, Usage } from "./event.ts";
import { ordinalOf, type RunId, type Seq, type TurnId } from "./ids.ts";
import type { Prompt } from "./prompt.ts";
import type { Question } from "./question.ts";

interface Base {
  readonly id: RunId;
  readonly prompt: Prompt;
  readonly acceptedAt: Seq;
  readonly key: string | undefined;
  readonly content: string | undefined;
  /** Number of workers that vanished while it ran, plus one. */
  readonly attempt: number;
  /** How often it was recovered: after a worker vanished, or after a shutdown that parked it. */
  readonly recoveries: number;
  /** Steers taken in for the current turn. Kept until a turn that had them completes. */
  readonly taken: readonly Prompt[];
  /** Number of turns and calls requested so far, from which their ids are made. */
  readonly turns: number;
  readonly calls: number;
  /** Characters of the current turn's text that the log has. */
  readonly textChars: number;
  /** The last requested turn, with its text so far. */
  readonly last: TurnText | undefined;
  /** The work it owns: at most one turn, and any number of calls. */
  readonly turn: TurnId | undefined;
  readonly live: readonly Call[];
  /** Open questions, and the number of questions asked so far. */
  readonly questions: readonly Question[];
  readonly asked: number;
  /** The cost of its settled turns, and the cost of the live turn so far. */
  readonly spent: Usage;
  readonly meter: Usage | undefined;
  /** The model that the live turn has requested, if the agent named it. */
  readonly model: ModelName | undefined;
}

export type Run = Running | Ending | Stopping | Parked;

/**
 * It owns a turn, calls, or both. Its worker moves it on: when the last turn ends it settles, or is ending while calls
 * are left. A cancel moves it to stopping, a shutdown parks it.
 * If Belay dies here: the next worker recovers it with the next `attempt`. Calls that can be begun again are begun
 * again, other work settles as `lost`, and the turn is requested again. It settles as failed when ATTEMPTS_MAX workers
 * have vanished, and as `lost` if the host does not resume runs.
 */
export type Running = Base & { readonly phase: "running" };
/**
 * Its last turn has ended with this outcome, and the calls that are left are being stopped, because no turn needs their
 * results. It settles with its last call; a cancel moves it to stopping.
 * If Belay dies here: its calls settle as `lost`, and its outcome stands.
 */
export type Ending = Base & { readonly phase: "ending"; readonly outcome: Outcome };
/**
 * A cancel was recorded. Its worker stops what it owns, and it settles as `cancelled` when all of that has ended or was
 * abandoned after its grace. A second cancel changes nothing.
 * If Belay dies here: its work settles as `lost`, and its outcome is still `cancelled`.
 */
export type Stopping = Base & {
  readonly phase: "stopping";
  readonly reason: CancelReason;
  readonly since: Seq;
  readonly abandoned: readonly string[];
  /** What its turn threw while it was being stopped. */
  readonly error?: Failure;
};
/**
 * Suspended at a shutdown. It owns at most calls that can be begun again, with their approvals, and none of them runs.
 * The next worker recovers it with the same `attempt`; a cancel settles it at once.
 * If Belay dies here: nothing was running, and nothing is lost.
 */
export type Parked = Base & { readonly phase: "parked" };

export type LiveEvent =
  | Exclude<RunEvent, { type: "run.started" | "run.settled" }>
  | TurnEvent
  | CallEvent
  | QuestionEvent;

/**
 * The run after `event`. Trusts the log: the end of a turn that the run does not own is a `Bug`, and no other
 * contradiction is looked for here. `verify` finds the others, such as a second cancel.
 */
export function evolveRun(run: Run, event: LiveEvent, seq: Seq): Run {
  switch (event.type) {
    case "run.cancel_requested":
      return { ...base(run), phase: "stopping", reason: event.reason, since: seq, abandoned: [] };
    case "run.parked":
      return { ...base(run), phase: "parked" };
    case "run.recovered":
      return { ...base(run), phase: "running", attempt: event.attempt, recoveries: run.recoveries + 1 };
    case "turn.requested":
      return { ...run, turn: event.turnId, turns: run.turns + 1, textChars: 0, last: beginText(event.turnId) };
    case "inbox.taken":
      return run;
    case "turn.extended":
      return {
        ...run,
        textChars: run.textChars + event.text.length,
        last: extendText(run.last ?? beginText(event.turnId), event.text),
        meter: event.usage ?? run.meter,
        model: event.model ?? run.model,
      };
    case "turn.settled":
      return settleTurn(run, event);
    case "call.requested":
      return {
        ...run,
        calls: ordinalOf(event.callId),
        live: [...run.live, requestedCall(run, event)],
      };
    case "question.asked":
      return { ...run, asked: run.asked + 1, questions: [...run.questions, question(event)] };
    case "question.settled":
      // @fault answered-twice
      return { ...run, questions: withoutQuestion(run.questions, event.questionId), live: withVerdict(run, event) };
    case "call.cancel_requested":
    case "call.settled":
      return evolveCalls(run, event, seq);
  }
}

/** The fields that survive a change of phase. Nothing of an ending or a stop is carried into another phase. */
function base(run: Run): Base {
  const { id, prompt, acceptedAt, key, content, attempt, recoveries, taken, turns, calls, turn, live } = run;
  const { questions, asked, spent, meter, model, textChars, last } = run;
  const work = { turns, calls, textChars, last, turn, live, questions, asked, spent, meter, model };
  return { id, prompt, acceptedAt, key, content, attempt, recoveries, taken, ...work };
}

function requestedCall(run: Run, event: Extract<CallEvent, { type: "call.requested" }>): Call {
  const { callId: id, name, idempotent, provider } = event;
  const again = idempotent === true ? ({ idempotent } as const) : {};
  const own = provider === undefined ? {} : { providerId: provider.id };
  return { phase: "running", id, name, ...own, ...again, ...(run.turn === undefined ? { byEnd: true } : {}) };
}

function question({ questionId: id, owner, about, deadlineMs }: Extract<QuestionEvent, { about: unknown }>): Question {
  return { id, owner, about, deadlineMs };
}

/** The answer to an approval stays with the call that requested it. An expired approval is a no. */
function withVerdict(run: Run, { questionId, ending }: Extract<QuestionEvent, { ending: unknown }>): readonly Call[] {
  const { owner, about } = run.questions.find((one) => one.id === questionId) ?? {};
  if (about?.kind !== "approval" || ending.kind === "withdrawn") return run.live;
  const verdict = { digest: about.digest, allowed: ending.kind === "allowed" }; // @fault denial-forgotten-by-recovery
  return run.live.map((call) => (call.id === owner ? { ...call, verdict } : call));
}

function withoutQuestion(questions: readonly Question[], id: Question["id"]): readonly Question[] {
  const rest = questions.filter((one) => one.id !== id);
  return rest.length === 0 ? NO_QUESTIONS : rest;
}

function settleTurn(run: Run, event: Extract<TurnEvent, { type: "turn.settled" }>): Run {
  if (run.turn !== event.turnId) throw new Bug(`${event.turnId} settled, but ${run.id} owns ${run.turn ?? "no turn"}`);
  const rest = {
    ...run,
    turn: undefined,
    last: event.text === undefined ? run.last : textOf(event.turnId, event.text),
    taken: event.outcome.kind === "completed" ? NOTHING_TAKEN : run.taken,
    spent: event.usage === undefined ? run.spent : sum(run.spent, event.usage), // @fault usage-of-the-last-turn-only
    meter: undefined,
    model: undefined,
  };
  if (rest.phase !== "running") return noteAbandoned(noteError(rest, event.outcome), "turn", event.outcome);
  // If calls are left, the run's outcome is known and waits for them.
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

/** A run's outcome names the work that did not stop within its grace. */
function noteAbandoned(run: Run, name: string, outcome: Outcome): Run {
  if (run.phase !== "stopping" || outcome.kind !== "cancelled" || outcome.abandoned === undefined) return run;
  return { ...run, abandoned: [...run.abandoned, name] };
}

function noteError(run: Run, outcome: Outcome): Run {
  if (run.phase !== "stopping" || outcome.kind !== "cancelled" || outcome.error === undefined) return run;
  return { ...run, error: outcome.error };
}

const sum = (one: Usage, other: Usage): Usage => ({
  inputTokens: one.inputTokens + other.inputTokens,
  outputTokens: one.outputTokens + other.outputTokens,
  estimated: one.estimated || other.estimated,
});

export const NOTHING_TAKEN: readonly Prompt[] = [];
export const NO_QUESTIONS: readonly Question[] = [];
export const NOTHING_SPENT: Usage = { inputTokens: 0, outputTokens: 0, estimated: false };
