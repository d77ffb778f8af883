// The client of a connection; each protocol version implements it. Types only.
import type { SessionId } from "../../../core/model/ids.ts";
import type { Json } from "../../../core/model/prompt.ts";
import type { Question } from "../../../core/model/question.ts";
import type { Update } from "./updates/update.ts";

export interface Peer {
  /** Sends an update. Resolves when it is written; rejects when the connection is closed. */
  send(place: SessionLocation, update: Update, origin: Origin): Promise<void>;
  /** Sends an update of the agent behind Belay unchanged. Undefined if this version of the protocol cannot carry it. */
  passOn?(place: SessionLocation, update: { readonly [key: string]: Json }): Promise<void>;
  /** Asks the client's user. Aborting withdraws the question. Resolves with undefined if the client cannot ask it. */
  ask(place: SessionLocation, question: Question, signal: AbortSignal): Promise<Choice | undefined>;
}

/** A session and its working directory. */
export interface SessionLocation {
  readonly sessionId: SessionId;
  readonly cwd: string;
}

/** Whether an update is live or history, and whether this client started the run, so that it has the prompt. */
export interface Origin {
  readonly when: "live" | "history";
  readonly whose: "own" | "other";
}

/** The user's answer to a question. `dismissed`: nothing was chosen. */
export type Choice =
  | { readonly kind: "allow"; readonly remember?: "session" }
  | { readonly kind: "deny" }
  | { readonly kind: "answer"; readonly value: Json }
  | { readonly kind: "dismissed" };
