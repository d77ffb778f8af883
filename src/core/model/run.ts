// A run that is live: one accepted prompt, from start to outcome. (Before its start it is an entry of the lane's queue;
// after its outcome only the log knows it.)
//
// Invariants
// 1. A run settles only when it owns nothing. This is our structured concurrency, and it is durable.
// 2. The first cancel reason wins.
// 3. A live run owns at least one piece of work, unless it is parked.
// 4. A question is open only while the work that asked it is going on.
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
  /** How many workers it has seen vanish, and the one it has now. */
  readonly attempt: number;
  /** How often it was taken up again: after those, and after shutdowns that parked it. */
  readonly recoveries: number;
  /** Steers taken in for the turn that is asked for now; kept until a turn that had them completes. */
  readonly taken: readonly Prompt[];
  /** Turns and calls asked for so far: the source of their ids. */
  readonly turns: number;
  readonly calls: number;
  /** Characters of the text of its turn that the log has. */
  readonly textChars: number;
  /** The turn that was asked for last, with its text so far. */
  readonly last: TurnText | undefined;
  /** What it owns: at most one turn, and any number of calls. */
  readonly turn: TurnId | undefined;
  readonly live: readonly Call[];
  /** Questions that are open, and how many were asked so far. */
  readonly questions: readonly Question[];
  readonly asked: number;
  /** What its turns have cost, and what the live one is known to have cost so far. */
  readonly spent: Usage;
  readonly meter: Usage | undefined;
  /** The model that the live turn has asked, as far as it was named. */
  readonly model: ModelName | undefined;
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
  /** What its turn threw while it was being stopped. */
  readonly error?: Failure;
};
export type Parked = Base & { readonly phase: "parked" };

export type LiveEvent =
  | Exclude<RunEvent, { type: "run.started" | "run.settled" }>
  | TurnEvent
  | CallEvent
  | QuestionEvent;

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
        live: [...run.live, begun(run, event)],
      };
    case "question.asked":
      return { ...run, asked: run.asked + 1, questions: [...run.questions, question(event)] };
    case "question.settled":
      // @fault answered-twice
      return { ...run, questions: without(run.questions, event.questionId), live: judged(run, event) };
    case "call.cancel_requested":
    case "call.settled":
      return evolveCalls(run, event, seq);
  }
}

/** What outlives a change of phase. Nothing of an ending or a stop is carried into another phase. */
function base(run: Run): Base {
  const { id, prompt, acceptedAt, key, content, attempt, recoveries, taken, turns, calls, turn, live } = run;
  const { questions, asked, spent, meter, model, textChars, last } = run;
  const work = { turns, calls, textChars, last, turn, live, questions, asked, spent, meter, model };
  return { id, prompt, acceptedAt, key, content, attempt, recoveries, taken, ...work };
}

function begun(run: Run, { callId: id, name, idempotent }: Extract<CallEvent, { type: "call.requested" }>): Call {
  const again = idempotent === true ? ({ idempotent } as const) : {};
  return { phase: "running", id, name, ...again, ...(run.turn === undefined ? { byEnd: true } : {}) };
}

function question({ questionId: id, owner, about, deadlineMs }: Extract<QuestionEvent, { about: unknown }>): Question {
  return { id, owner, about, deadlineMs };
}

/** The answer to an approval stays with the call that asked for it. Without an answer in time that is a no. */
function judged(run: Run, { questionId, ending }: Extract<QuestionEvent, { ending: unknown }>): readonly Call[] {
  const { owner, about } = run.questions.find((one) => one.id === questionId) ?? {};
  if (about?.kind !== "approval" || ending.kind === "withdrawn") return run.live;
  const verdict = { digest: about.digest, allowed: ending.kind === "allowed" }; // @fault denial-forgotten-by-recovery
  return run.live.map((call) => (call.id === owner ? { ...call, verdict } : call));
}

function without(questions: readonly Question[], id: Question["id"]): readonly Question[] {
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
