// What the server must know of a provider's wire format: where it listens, what it refuses, and how it says things.
import type { Finish, StreamError, Usage } from "./script.ts";

export type FormatName = "openai-chat" | "openai-responses" | "anthropic";

/** What the provider remembers between requests. */
export interface Memory {
  /** The items of finished answers, which later requests may refer to by id. */
  readonly items: Map<string, "message" | "reasoning" | "function_call">;
  /** Counted, so that an id is never used twice and a failing test fails with the same ids again. */
  nextNumber(): number;
}

export function newMemory(): Memory {
  let last = 0;
  return { items: new Map(), nextNumber: () => ++last };
}

/** What a rule finds wrong with a request; empty if nothing. */
export type Rule = (body: unknown, memory: Memory) => readonly string[];

export interface Format {
  readonly name: FormatName;
  readonly path: string;
  /** Headers without which the provider does not listen. */
  readonly headers: readonly string[];
  readonly rules: Readonly<Record<string, Rule>>;
  /** The body of an answer that is an HTTP error. */
  failure(status: number, message: string): unknown;
  open(body: unknown, memory: Memory): Rendering;
}

/** One streamed answer. Each method returns the server-sent events, as text, that say it. */
export interface Rendering {
  /** The opening events. `withText` if a text comes first, which changes how some begin. */
  begin(withText: boolean): string;
  reasoning(text: string, signed: boolean): string;
  text(text: string): string;
  refusal(text: string): string;
  callBegin(name: string, id: string | undefined): string;
  callPiece(piece: string): string;
  callEnd(): string;
  endBlock(): string;
  ping(): string;
  error(kind: StreamError, message: string): string;
  finish(how: Finish, usage: Usage): string;
}

export const MODEL_TIME_S = 1_800_000_000;

/** One server-sent event. */
export function sse(data: unknown, event?: string): string {
  const name = event === undefined ? "" : `event: ${event}\n`;
  return `${name}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;
}
