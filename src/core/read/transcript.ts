// The messages of a conversation, for people and for the next request to a model.
import type { CancelReason, Failure, Outcome } from "../model/cancel.ts";
import type { ModelName, ProviderCall, TurnPart, Usage } from "../model/event.ts";
import type { CallId, RunId, TurnId } from "../model/ids.ts";
import type { InboxItem } from "../model/inbox.ts";
import type { Json } from "../model/prompt.ts";

export type Message =
  | {
      readonly role: "user";
      readonly runId: RunId;
      readonly text: string;
      readonly data?: Json;
      /** It was withdrawn before it began: people can read it, and no model is given it. */
      readonly withdrawn?: true;
    }
  /** An inbox item that the model received. */
  | { readonly role: "note"; readonly runId: RunId; readonly item: InboxItem }
  /** For the model this replaces everything before it. `request`: the prompt that it was working on. */
  | { readonly role: "summary"; readonly runId: RunId; readonly text: string; readonly request: string }
  | {
      readonly role: "assistant";
      readonly runId: RunId;
      /** A turn has several messages if it made calls, or took in prompts, before it continued. */
      readonly turnId?: TurnId;
      readonly text: string;
      /** The answer in parts, if the text alone is not the whole answer. */
      readonly parts?: readonly TurnPart[];
      readonly calls: readonly TranscriptCall[];
      readonly finish: Finish;
      readonly usage?: Usage;
      readonly model?: ModelName;
      /** It was cut off and requested again: the messages that follow replace it. */
      readonly again?: true;
    }
  | { readonly role: "tool"; readonly runId: RunId; readonly results: readonly TranscriptResult[] };

export interface TranscriptCall {
  readonly callId: CallId;
  readonly name: string;
  readonly input: Json;
  readonly provider?: ProviderCall;
}

export interface TranscriptResult {
  readonly callId: CallId;
  readonly name: string;
  readonly outcome: CallState;
  /** It ended without having begun: nothing was done. */
  readonly begun?: false;
  readonly result?: Json;
  readonly changes?: readonly string[];
}

/** The outcome of a call, or `running`. */
export type CallState = Outcome | { readonly kind: "running" };

/** Why an assistant message ends where it does. */
export type Finish =
  | { readonly kind: "end" | "calls" | "length" | "refusal" | "other" | "lost" | "live" }
  | { readonly kind: "cancelled"; readonly reason: CancelReason; readonly error?: Failure }
  | { readonly kind: "failed"; readonly code: string; readonly message: string };

/** Its worker vanished or was shut down, and the run continues with another turn instead. */
export const isCutOff = (end: { readonly kind: string; readonly reason?: { readonly kind: string } }): boolean =>
  end.kind === "lost" || (end.kind === "cancelled" && end.reason?.kind === "shutdown");
