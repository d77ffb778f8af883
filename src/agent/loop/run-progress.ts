// The progress of a run, read from its transcript. Used to decide whether the run continues.
import type { CallId, RunId } from "../../core/model/ids.ts";
import type { Json } from "../../core/model/prompt.ts";
import type { CallState, Message, TranscriptResult } from "../../core/read/transcript.ts";

export interface RunProgress {
  /** Turns before this one. */
  readonly turns: number;
  /** All calls of the run, oldest first. */
  readonly calls: readonly CallProgress[];
  /** The calls of the last turn. */
  readonly lastCalls: readonly CallProgress[];
  /** The text of the last turn. */
  readonly text: string;
}

export interface CallProgress {
  readonly name: string;
  readonly input: Json;
  readonly outcome: CallState;
  readonly result?: Json;
}

/** Whether the turn follows calls of its run: the loop guard and `stopWhen` apply only then. */
export function followsCalls(messages: readonly Message[], runId: RunId): boolean {
  const last = messages.findLast(
    (one) => one.role === "tool" || (one.role === "assistant" && one.finish.kind !== "live"),
  );
  return last?.role === "tool" && last.runId === runId;
}

export function runProgress(messages: readonly Message[], runId: RunId, turns: number): RunProgress {
  const rounds = roundsOf(messages, runId);
  const text = messages.findLast((one) => one.role === "assistant" && one.runId === runId && one.calls.length > 0);
  return {
    turns,
    calls: rounds.flat(),
    lastCalls: rounds.at(-1) ?? [],
    text: text?.role === "assistant" ? text.text : "",
  };
}

/** The call that was repeated with the same result in more than `repeatsMax` of the last turns, if there is one. */
export function findLoop(
  messages: readonly Message[],
  runId: RunId,
  { repeatsMax, turns }: { readonly repeatsMax: number; readonly turns: number },
): { readonly name: string; readonly times: number } | undefined {
  const rounds = roundsOf(messages, runId).slice(-turns);
  if (rounds.length <= repeatsMax) return undefined;
  // Only calls that the last turn made again can be part of a loop.
  for (const call of rounds.at(-1) ?? []) {
    const same = rounds.filter((round) => round.some((one) => isSameCall(one, call)));
    if (same.length <= repeatsMax) continue;
    // Results may be long, so they are compared only for calls that are the same.
    const result = resultText(call);
    const times = same.filter((round) =>
      round.some((one) => isSameCall(one, call) && resultText(one) === result),
    ).length;
    if (times > repeatsMax) return { name: call.name, times };
  }
  return undefined;
}

const isSameCall = (one: CallProgress, other: CallProgress): boolean =>
  one.name === other.name && JSON.stringify(one.input) === JSON.stringify(other.input);

const resultText = ({ outcome, result }: CallProgress): string => JSON.stringify([outcome, result ?? null]);

/** The calls of a run, turn by turn. */
function roundsOf(messages: readonly Message[], runId: RunId): readonly (readonly CallProgress[])[] {
  return messages.flatMap((message, at) => {
    if (message.role !== "assistant" || message.runId !== runId || message.calls.length === 0) return [];
    const next = messages[at + 1];
    const results = resultsById(next?.role === "tool" ? next.results : []);
    return [
      message.calls.map(({ callId, name, input }): CallProgress => {
        const { outcome, result } = results.get(callId) ?? LOST;
        return { name, input, outcome, ...(result === undefined ? {} : { result }) };
      }),
    ];
  });
}

const resultsById = (results: readonly TranscriptResult[]): ReadonlyMap<CallId, TranscriptResult> =>
  new Map(results.map((result) => [result.callId, result]));

const LOST: { readonly outcome: CallState; readonly result?: Json } = { outcome: { kind: "lost" } };
