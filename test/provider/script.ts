// What a test tells the server to answer, in words of no provider. The renderers say it in the format of each.
import type { JsonObject } from "./json.ts";

export type Finish = "stop" | "calls" | "length" | "refusal";

/** Errors as providers tell them in the middle of a stream. */
export type StreamError = "overloaded" | "rate limit" | "server";

export interface Usage {
  readonly input: number;
  readonly output: number;
  readonly reasoning?: number;
  readonly cached?: number;
}

export interface Call {
  readonly name: string;
  /** One of its own if it has none. Give one to make it a duplicate, or ugly. */
  readonly id?: string;
  readonly input?: JsonObject;
  /** Instead of `input`: sent as it is, so that it may be malformed. */
  readonly arguments?: string;
}

/** What the model says. Neighbours of one kind are pieces of one block. */
export type Said =
  /** With `signed: false` an Anthropic thinking block ends without its signature. */
  | { readonly reasoning: string; readonly signed?: false }
  | { readonly text: string }
  | { readonly refusal: string }
  | CallStep;

export interface CallStep {
  readonly call: Call;
  /** The arguments come in pieces of a few characters. */
  readonly inPieces?: true;
  /** A gate behind the first of these pieces. */
  readonly holdInside?: string;
  /** Only the first of these pieces comes, and no end: for a cut, a reset, an error or a finish in the middle. */
  readonly unfinished?: true;
}

/** What happens on the wire without the model saying anything. */
export type Happened =
  /** A gate: the test awaits `reached` and calls `release`. What stands before it has been flushed. */
  | { readonly hold: string }
  /** Sends the response headers now; else they go out with the first byte. */
  | { readonly headers: true }
  /** Sends the opening events (`message_start` and the like) now; else they go out with what is said first. */
  | { readonly begin: true }
  /** Ends the block that is open; else the next block or the finish does. */
  | { readonly endBlock: true }
  /** An event without meaning that keeps the line alive. */
  | { readonly ping: true }
  /** From here on every byte is a write of its own. */
  | { readonly bytewise: true }
  /** One `data:` line as it is, for what no provider should send. */
  | { readonly data: string };

/** How it ends. A script without an end finishes by itself: with `calls` if there were any, else with `stop`. */
export type End =
  | { readonly finish: Finish; readonly usage?: Usage }
  /** An HTTP error instead of a stream. */
  | { readonly status: number; readonly retryAfter?: string; readonly message?: string }
  | { readonly error: StreamError; readonly message?: string }
  /** The connection is reset. */
  | { readonly reset: true }
  /** The response ends as if all were well, and the events that say so are missing. */
  | { readonly cut: true }
  /** Nothing more, for ever. */
  | { readonly silence: true }
  /** This text, again and again, a little every millisecond, for ever. */
  | { readonly dribble: string };

export type Step = Said | Happened | End;
export type Script = readonly Step[];

const ENDS = ["finish", "status", "error", "reset", "cut", "silence", "dribble"] as const;
const BEFORE_STATUS = ["hold", "status"];

export const isEnd = (step: Step): step is End => ENDS.some((name) => name in step);

/** The same script; or an error, if it says what cannot be played. */
export function script(steps: Script): Script {
  const early = steps.slice(0, -1).find(isEnd);
  if (early !== undefined) throw new Error(`Nothing can follow ${JSON.stringify(early)}.`);
  for (const step of steps) {
    if ("call" in step && step.call.input !== undefined && step.call.arguments !== undefined) {
      throw new Error(`The call of ${step.call.name} has its arguments twice.`);
    }
  }
  const begun = steps.find((step) => !BEFORE_STATUS.some((name) => name in step));
  if (steps.some((step) => "status" in step) && begun !== undefined) {
    throw new Error(`There is no status after ${JSON.stringify(begun)}.`);
  }
  return steps;
}

const PIECE_CHARS = 3;

/** The arguments of a call in the pieces in which they are sent. */
export function argumentPieces({ call, inPieces, holdInside, unfinished }: CallStep): readonly string[] {
  const text = call.arguments ?? JSON.stringify(call.input ?? {});
  if (unfinished) return [text.slice(0, PIECE_CHARS)];
  if (inPieces === undefined && holdInside === undefined) return [text];
  const pieces: string[] = [];
  for (let at = 0; at < text.length; at += PIECE_CHARS) pieces.push(text.slice(at, at + PIECE_CHARS));
  return pieces;
}
