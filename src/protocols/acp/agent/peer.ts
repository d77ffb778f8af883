// The client at the other end, as the door speaks to it; each version of the protocol has one. Types only.
import type { SessionId } from "../../../core/model/ids.ts";
import type { Json } from "../../../core/model/prompt.ts";
import type { Question } from "../../../core/model/question.ts";
import type { Update } from "./updates/update.ts";

export interface Peer {
  /** Resolves when it is written. Rejects when nobody is there any more. */
  tell(place: SessionLocation, telling: Update, heard: Origin): Promise<void>;
  /** Sends an update of the agent behind Belay as it came. Undefined: this version of the protocol has other words. */
  passOn?(place: SessionLocation, update: { readonly [key: string]: Json }): Promise<void>;
  /** Puts a question to whoever is there. Aborted, it is taken back. Undefined: it cannot be asked there. */
  ask(place: SessionLocation, question: Question, signal: AbortSignal): Promise<Choice | undefined>;
}

/** The session that is spoken of, and where it works. */
export interface SessionLocation {
  readonly sessionId: SessionId;
  readonly cwd: string;
}

/** How it is told: live or as history, and whether its run was begun by this very client, which has its prompt. */
export interface Origin {
  readonly when: "live" | "history";
  readonly whose: "own" | "other";
}

/** What came of a question. `dismissed`: nobody chose anything. */
export type Choice =
  | { readonly kind: "allow"; readonly remember?: "session" }
  | { readonly kind: "deny" }
  | { readonly kind: "answer"; readonly value: Json }
  | { readonly kind: "dismissed" };
