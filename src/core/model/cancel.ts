// The types of stopping: targets, reasons, receipts and outcomes.

import { NOTE_CHARS_MAX } from "../limits.ts";
import type { CallId, ProcessId, QuestionId, RunId, Seq, SessionId, TurnId } from "./ids.ts";

/**
 * What a cancel stops. A session: every run accepted so far, and its background processes. A run: all the work it owns.
 * A call: only that call; its run continues. A process: only that process; its call continues. An approval: the call
 * that waits for it.
 */
export type Target = SessionId | RunId | CallId | ProcessId | QuestionId;

/** Why a cancel was requested. A closed set, so that reasons can be counted. `by` names the requester, if known. */
export type CancelReason =
  | { readonly kind: "user"; readonly note?: string; readonly by?: string }
  | { readonly kind: "policy"; readonly note: string }
  | { readonly kind: "timeout"; readonly limitMs: number }
  | { readonly kind: "superseded"; readonly by: RunId }
  | { readonly kind: "parent"; readonly id: SessionId | RunId | TurnId | CallId }
  | { readonly kind: "closed" }
  | { readonly kind: "shutdown" };

/** A reason as a caller gives it: a note, or the object. Belay itself sets the other kinds. */
export type GivenReason = string | { readonly kind: "user" | "policy"; readonly note?: string; readonly by?: string };

/** Ends a note that was cut. */
const CUT = " … [cut]";

/** Cuts a note to the limit and marks the cut. It never refuses: a stop must not fail because of its text. */
export function cutNote(note: string): string {
  const whole = note.toWellFormed();
  return whole.length <= NOTE_CHARS_MAX ? whole : whole.slice(0, NOTE_CHARS_MAX - CUT.length).toWellFormed() + CUT;
}

/** Cuts every text of a reason that a caller gives, whatever its type. */
export function cutReason(given: unknown): unknown {
  if (typeof given === "string") return cutNote(given);
  if (typeof given !== "object" || given === null || Array.isArray(given)) return given;
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => [name, typeof value === "string" ? cutNote(value) : value]),
  );
}

/** The immediate answer to a cancel. It says what was recorded; when the target ends is in its outcome. */
export type CancelReceipt =
  /** It had not begun, and never will. */
  | { readonly kind: "withdrawn" }
  /** Its stop was recorded at `since`. `first`: this request is the one that was recorded. */
  | { readonly kind: "stopping"; readonly since: Seq; readonly first: boolean }
  /** It had already ended with this outcome. */
  | { readonly kind: "settled"; readonly outcome: Outcome }
  | { readonly kind: "unknown" };

/** What a cancel of a session found. `idle`: there was nothing to cancel, and nothing was changed. */
export type SessionReceipt =
  | { readonly kind: "idle" | "unknown"; readonly runs: readonly [] }
  | {
      readonly kind: "stopping" | "withdrawn";
      readonly runs: readonly Covered[];
      /** The background processes that are being stopped, if any. */
      readonly processes?: readonly CoveredProcess[];
      /** Keys of prompts that the cancel names and that have not arrived. They are withdrawn on arrival. */
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

/** How a run, turn, call or process ended. Written exactly once. */
export type Outcome =
  /**
   * `into`: the run that took in this steer. `finish`: why the model's answer is incomplete: its length limit, a
   * refusal, or another reason.
   */
  | { readonly kind: "completed"; readonly into?: RunId; readonly finish?: "length" | "refusal" | "other" }
  | { readonly kind: "failed"; readonly code: string; readonly message: string }
  /**
   * `abandoned` names the work that did not stop within its grace; its late results are dropped. `dying` names the
   * processes that were killed and still existed at that moment; their ends are recorded when the kernel reports them.
   * `error`: what the work threw while it was being stopped, other than the abort itself, such as a failed rollback.
   */
  | {
      readonly kind: "cancelled";
      readonly reason: CancelReason;
      readonly abandoned?: readonly string[];
      readonly dying?: readonly ProcessId[];
      readonly error?: Failure;
    }
  /** Its worker vanished, so what it did is unknown. */
  | { readonly kind: "lost" };

/** An error as it is recorded: a one-word code, and a message of bounded length. */
export interface Failure {
  readonly code: string;
  readonly message: string;
}

/** The error that work threw while it was being stopped, as a sentence for models and people. */
export const failedWhileStopping = ({ message }: Failure): string =>
  `While it was being stopped it failed: ${message.replace(/[.\s]+$/, "")}.`;

/** The requester and the reason of a stop, as text for models and people. */
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
  /** Keys of prompts that the user has sent and received no answer for. They may not have arrived. */
  readonly prompts?: readonly string[];
  readonly actor?: string;
  /** Those of `prompts` whose run the store knows and that have settled. */
  readonly arrived?: readonly string[];
  /** The user has reached its limit of memos: no more are kept. */
  readonly crowded?: true;
}

/** Cancels by the caller's key, even before the id is known; with `prompts`, even before the prompt has arrived. */
export interface CancelKey extends NamedPrompts {
  readonly type: "cancel-key";
  readonly key: string;
  /** Digest of the prompt, if only that prompt is meant: the same key may stand for a run of another prompt. */
  readonly content?: string;
  readonly reason: CancelReason;
}

/** Whether a cancel by key applies to this run. */
export const isMeant = (
  { key, content }: Pick<CancelKey, "key" | "content">,
  run: { readonly key: string | undefined; readonly content: string | undefined },
): boolean => run.key === key && (content === undefined || run.content === content);

/** The event loop was blocked for `ms`. Nothing could be stopped during that time. */
export interface Blocked {
  readonly ms: number;
  /** The turn or call whose code was entered last; if none was entered recently, all that were live. */
  readonly works: readonly BlockedWork[];
}

export interface BlockedWork {
  readonly sessionId: SessionId;
  readonly runId: RunId;
  /** The name of the tool, or `turn`. */
  readonly work: string;
}
