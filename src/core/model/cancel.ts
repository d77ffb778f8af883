// The vocabulary of stopping: what is aimed at, why, what the asker is told, how it ended.

import { NOTE_CHARS_MAX } from "../limits.ts";
import type { CallId, ProcessId, QuestionId, RunId, Seq, SessionId, TurnId } from "./ids.ts";

/**
 * Cancelling a session covers what was accepted before, and what goes on in its background; a run, all it owns; a call
 * leaves its run going; a process leaves its call going. Cancelling an approval cancels the call that waits for it.
 */
export type Target = SessionId | RunId | CallId | ProcessId | QuestionId;

/** Why. Closed, because people will count by it. `by` names who asked, where that is known. */
export type CancelReason =
  | { readonly kind: "user"; readonly note?: string; readonly by?: string }
  | { readonly kind: "policy"; readonly note: string }
  | { readonly kind: "timeout"; readonly limitMs: number }
  | { readonly kind: "superseded"; readonly by: RunId }
  | { readonly kind: "parent"; readonly id: SessionId | RunId | TurnId | CallId }
  | { readonly kind: "closed" }
  | { readonly kind: "shutdown" };

/** As somebody gives it: a note, or in full. The other kinds are Belay's own. */
export type GivenReason = string | { readonly kind: "user" | "policy"; readonly note?: string; readonly by?: string };

/** What the asker is told at once. When the target ends is told by its outcome, not here. */
/** The end of a note that was cut. */
const CUT = " … [cut]";

/** A note of a reason, within the limit. Cut and marked, never refused: a stop does not fail for its form. */
export function cutNote(note: string): string {
  const whole = note.toWellFormed();
  return whole.length <= NOTE_CHARS_MAX ? whole : whole.slice(0, NOTE_CHARS_MAX - CUT.length).toWellFormed() + CUT;
}

/** The same for every text of a reason as a caller gives it, whatever else it is. */
export function cutReason(given: unknown): unknown {
  if (typeof given === "string") return cutNote(given);
  if (typeof given !== "object" || given === null || Array.isArray(given)) return given;
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => [name, typeof value === "string" ? cutNote(value) : value]),
  );
}

export type CancelReceipt =
  /** It had not begun, and never will. */
  | { readonly kind: "withdrawn" }
  /** It has been winding down since `since`. `first` says whether this request was the one that counted. */
  | { readonly kind: "stopping"; readonly since: Seq; readonly first: boolean }
  /** Too late. It had already ended, like this. */
  | { readonly kind: "settled"; readonly outcome: Outcome }
  | { readonly kind: "unknown" };

/** What a cancel of a whole session found. `idle`: there was nothing to cancel, and nothing was changed. */
export type SessionReceipt =
  | { readonly kind: "idle" | "unknown"; readonly runs: readonly [] }
  | {
      readonly kind: "stopping" | "withdrawn";
      readonly runs: readonly Covered[];
      /** What goes on in the background and is being stopped, if anything does. */
      readonly processes?: readonly CoveredProcess[];
      /** Keys of prompts that were named and have not arrived. They are withdrawn when they do. */
      readonly prompts?: readonly string[];
    };

export interface Covered {
  readonly runId: RunId;
  readonly receipt: CancelReceipt;
}

export interface CoveredProcess {
  readonly processId: ProcessId;
  readonly receipt: CancelReceipt;
}

/** How it ended. Exactly one per run, turn and call; written once. */
export type Outcome =
  /**
   * `into`: a steer whose text was taken into that run. `finish`: the model did not end its answer by itself: it
   * reached its length, or refused.
   */
  | { readonly kind: "completed"; readonly into?: RunId; readonly finish?: "length" | "refusal" | "other" }
  | { readonly kind: "failed"; readonly code: string; readonly message: string }
  /**
   * `abandoned` names the work that did not stop when asked; its late results are dropped. `dying` names the processes
   * that were killed and still existed at that moment; their ends are recorded when the kernel reports them. `error`:
   * what it threw while it was being stopped, if that is more than the stop itself: a rollback that failed.
   */
  | {
      readonly kind: "cancelled";
      readonly reason: CancelReason;
      readonly abandoned?: readonly string[];
      readonly dying?: readonly ProcessId[];
      readonly error?: Failure;
    }
  /** Its worker vanished. We do not know what it did, and do not pretend to. */
  | { readonly kind: "lost" };

/** An error, as it is recorded: a code that is one word, and a message of bounded length. */
export interface Failure {
  readonly code: string;
  readonly message: string;
}

/** What went wrong while something was being stopped, in one sentence for a model and a person. */
export const failedWhileStopping = ({ message }: Failure): string =>
  `While it was being stopped it failed: ${message.replace(/[.\s]+$/, "")}.`;

/** Who stopped something, and why, in the words a model and a person can use. */
export function who(reason: CancelReason): string {
  switch (reason.kind) {
    case "user":
      return `${reason.by ?? "the user"}${reason.note === undefined ? "" : `: ${reason.note}`}`;
    case "policy":
      return `a rule of the host: ${reason.note}`;
    case "timeout":
      return `its time limit of ${reason.limitMs} ms`;
    case "superseded":
      return "the user, who sent something more urgent";
    case "parent":
      return "the end of what it belonged to";
    case "closed":
      return "the user, who closed the session";
    case "shutdown":
      return "a shutdown of the server";
  }
}

/** The prompts that a cancel names, and the user that sent it. */
export interface NamedPrompts {
  /** Keys of prompts that the user has sent and not seen answered. They may not have arrived. */
  readonly prompts?: readonly string[];
  readonly actor?: string;
  /** Those of them that have a run, as far as only the store knows: they have arrived, and are over. */
  readonly arrived?: readonly string[];
  /** Set when the user has as many memos as it may have: no more are left. */
  readonly crowded?: true;
}

/** By the caller's own key: usable before the acceptance was answered. With `prompts`, even before it has arrived. */
export interface CancelKey extends NamedPrompts {
  readonly type: "cancel-key";
  readonly key: string;
  /** Digest of what was asked under it, if only that is meant: a prompt that was refused stops nobody else's run. */
  readonly content?: string;
  readonly reason: CancelReason;
}

/** Whether a cancel by key means this run. */
export const isMeant = (
  { key, content }: Pick<CancelKey, "key" | "content">,
  run: { readonly key: string | undefined; readonly content: string | undefined },
): boolean => run.key === key && (content === undefined || run.content === content);

/** The event loop did not turn for `ms`, and nothing could be stopped meanwhile. */
export interface Blocked {
  readonly ms: number;
  /** The turn or call whose code was entered last; if none was entered lately, those that were live. */
  readonly works: readonly BlockedWork[];
}

export interface BlockedWork {
  readonly sessionId: SessionId;
  readonly runId: RunId;
  /** The name of the tool, or `turn`. */
  readonly work: string;
}
