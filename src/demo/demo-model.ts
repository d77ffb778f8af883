// A scripted model: it streams text and reasoning and requests calls, without a key or a network.
//
// Invariants
// 1. An abort ends its stream in the same tick, and leaves no timer behind.
// 2. Deterministic: the same conversation gets the same answer.
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
} from "@ai-sdk/provider";
import type { Clock } from "../ports/clock.ts";
import { DEMO_PACE, type DemoPace } from "./pace.ts";
import { type PlannedCall, planFor, type ScriptPlan } from "./script.ts";
import { unansweredInput } from "./unanswered-input.ts";

export interface DemoModelOptions {
  readonly clock: Clock;
  readonly pace?: Pick<DemoPace, "wordMs">;
}

export function demoModel({ clock, pace = DEMO_PACE }: DemoModelOptions): LanguageModelV4 {
  return {
    specificationVersion: "v4",
    provider: "belay.demo",
    modelId: "demo",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("The demo model only streams: use doStream.")),
    doStream: async ({ prompt, abortSignal }: LanguageModelV4CallOptions): Promise<LanguageModelV4StreamResult> => {
      const input = unansweredInput(prompt);
      const parts = partsOf(planFor(input), input.callsBefore);
      return { stream: streamOf(parts, { clock, wordMs: pace.wordMs, signal: abortSignal ?? NEVER }) };
    },
  };
}

const NEVER = new AbortController().signal;

interface StreamOptions {
  readonly clock: Clock;
  readonly wordMs: number;
  readonly signal: AbortSignal;
}

/** Streams one word at a time, as fast as it is read. */
function streamOf(
  parts: Iterator<LanguageModelV4StreamPart>,
  { clock, wordMs, signal }: StreamOptions,
): ReadableStream<LanguageModelV4StreamPart> {
  let cancelTimer = (): void => {};
  let stop = (): void => {};
  const over = (): void => {
    cancelTimer();
    signal.removeEventListener("abort", stop);
  };
  return new ReadableStream<LanguageModelV4StreamPart>(
    {
      start: (controller) => {
        stop = () => {
          over();
          controller.error(signal.reason);
        };
        if (signal.aborted) stop();
        else signal.addEventListener("abort", stop, { once: true });
      },
      pull: (controller) => {
        const { done, value } = parts.next();
        if (done) {
          over();
          return controller.close();
        }
        if (!isWord(value)) return controller.enqueue(value);
        return new Promise<void>((resolve) => {
          cancelTimer = clock.after(wordMs, () => {
            controller.enqueue(value);
            resolve();
          });
        });
      },
      cancel: over,
    },
    // Backpressure: no word is produced before it is read.
    { highWaterMark: 0 },
  );
}

const isWord = ({ type }: LanguageModelV4StreamPart): boolean => type === "text-delta" || type === "reasoning-delta";

function* partsOf(
  { thought, text, calls }: ScriptPlan,
  callsBefore: number,
): Generator<LanguageModelV4StreamPart, void> {
  yield { type: "stream-start", warnings: [] };
  if (thought !== undefined) {
    yield { type: "reasoning-start", id: "thought" };
    for (const delta of wordsOf(thought)) yield { type: "reasoning-delta", id: "thought", delta };
    yield { type: "reasoning-end", id: "thought" };
  }
  yield { type: "text-start", id: "text" };
  for (const delta of wordsOf(text)) yield { type: "text-delta", id: "text", delta };
  yield { type: "text-end", id: "text" };
  for (const [at, call] of calls.entries()) yield* callParts(call, `demo_${callsBefore + at + 1}`);
  const unified = calls.length === 0 ? "stop" : "tool-calls";
  yield { type: "finish", finishReason: { unified, raw: undefined }, usage: usageOf(thought ?? "", text) };
}

function* callParts({ name, input }: PlannedCall, id: string): Generator<LanguageModelV4StreamPart, void> {
  const text = JSON.stringify(input);
  yield { type: "tool-input-start", id, toolName: name };
  yield { type: "tool-input-delta", id, delta: text };
  yield { type: "tool-input-end", id };
  yield { type: "tool-call", toolCallId: id, toolName: name, input: text };
}

const wordsOf = (text: string): readonly string[] => text.split(/(?<=\s)/);

/** A script has no tokens, so output words are counted; input is free. */
function usageOf(thought: string, text: string): Extract<LanguageModelV4StreamPart, { type: "finish" }>["usage"] {
  const reasoning = wordsOf(thought).length;
  const words = wordsOf(text).length;
  return {
    inputTokens: { total: 0, noCache: 0, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: reasoning + words, text: words, reasoning },
  };
}
