// A piece of an answer in a transcript: text, then calls, then their results.
//
// A turn is one piece, unless something came in between: text after a call, a call after the results of others, a
// prompt that was taken in. Then the next piece comes after that, so that a transcript has the order of the log.
import type { Outcome } from "../model/cancel.ts";
import type { Event, ModelName, TurnFinish, TurnPart, Usage } from "../model/event.ts";
import type { CallId, RunId, TurnId } from "../model/ids.ts";
import type { Finish, Message, TranscriptCall, TranscriptResult } from "./transcript.ts";

export interface Answer {
  readonly runId: RunId;
  readonly turnId: TurnId | undefined;
  text: string;
  parts: readonly TurnPart[] | undefined;
  readonly calls: TranscriptCall[];
  readonly results: Map<CallId, TranscriptResult>;
  finish: Finish;
  usage: Usage | undefined;
  model: ModelName | undefined;
  again: boolean;
}

export const emptyAnswer = (runId: RunId, turnId: TurnId | undefined, finish: Finish = { kind: "live" }): Answer => ({
  runId,
  turnId,
  text: "",
  parts: undefined,
  calls: [],
  results: new Map(),
  finish,
  usage: undefined,
  model: undefined,
  again: false,
});

export const isEmpty = ({ text, calls }: Answer): boolean => text === "" && calls.length === 0;

/** Whether all its calls have ended, so that later calls may depend on their results. */
export const isAnswered = ({ calls, results }: Answer): boolean => results.size === calls.length;

/** The next piece of the same turn. The turn's finish and cost move to it. */
export function nextAnswer(before: Answer): Answer {
  const next = emptyAnswer(before.runId, before.turnId, before.finish);
  next.usage = before.usage;
  next.model = before.model;
  before.usage = undefined;
  before.finish = { kind: before.calls.length > 0 ? "calls" : "end" };
  return next;
}

/** An answer and its results, as messages. */
export function answerMessages(answer: Answer): readonly Message[] {
  const { runId, turnId, text, parts, calls, finish, usage, model, again } = answer;
  const assistant: Message = {
    role: "assistant",
    runId,
    ...(turnId === undefined ? {} : { turnId }),
    text,
    ...(parts === undefined
      ? {}
      : { parts: parts.filter((part) => part.kind !== "call" || part.index < calls.length) }),
    calls: [...calls],
    finish,
    ...(usage === undefined ? {} : { usage }),
    ...(model === undefined ? {} : { model }),
    ...(again ? { again } : {}),
  };
  if (calls.length === 0) return [assistant]; // @fault calls-without-results
  // A call whose end is not recorded yet has a result too.
  // @fault calls-without-results:results
  const results = calls.map(
    ({ callId, name }): TranscriptResult => answer.results.get(callId) ?? { callId, name, outcome: RUNNING },
  );
  return [assistant, { role: "tool", runId, results }];
}

const RUNNING = { kind: "running" } as const;

export function callOf({ callId, name, input, provider }: Extract<Event, { type: "call.requested" }>): TranscriptCall {
  return { callId, name, input, ...(provider === undefined ? {} : { provider }) };
}

export function resultOf(event: Extract<Event, { type: "call.settled" }>, name: string): TranscriptResult {
  const { callId, outcome, result, changes, begun } = event;
  const more = { ...(result === undefined ? {} : { result }), ...(changes === undefined ? {} : { changes }) };
  return { callId, name, outcome, ...(begun === false ? { begun } : {}), ...more };
}

/** How the message of a turn ends. */
export function turnFinish({ outcome, next, finish = "stop" }: Extract<Event, { type: "turn.settled" }>): Finish {
  return finishOf(outcome, next === "turn" ? "calls" : ENDS[finish]);
}

const ENDS = {
  stop: "end",
  calls: "end",
  length: "length",
  refusal: "refusal",
  other: "other",
} as const satisfies Record<TurnFinish, Finish["kind"]>;

export function finishOf(
  outcome: Outcome,
  completed: Exclude<Finish["kind"], "cancelled" | "failed" | "lost" | "live"> = "end",
): Finish {
  switch (outcome.kind) {
    case "completed":
      return { kind: completed };
    case "lost":
      return { kind: "lost" };
    case "cancelled":
      return {
        kind: "cancelled",
        reason: outcome.reason,
        ...(outcome.error === undefined ? {} : { error: outcome.error }),
      };
    case "failed":
      return { kind: "failed", code: outcome.code, message: outcome.message };
  }
}
