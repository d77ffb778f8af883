// What callers were told, beside what the log has: what the laws of this suite are about. Data only.
import type { Accepted, QueueReceipt } from "../../src/core/command.ts";
import { ControlError } from "../../src/core/control-error.ts";
import type { Recorded } from "../../src/core/event.ts";
import type { RunId, Seq, SessionId } from "../../src/core/ids.ts";

/** What became of a promise that a caller holds. `raw`: rejected with something no caller can branch on. */
export type Told =
  | { readonly kind: "waiting" }
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "refused"; readonly code: string; readonly message: string }
  | { readonly kind: "raw"; readonly error: string };

/** One promise. `life`: which start of the house it was asked of. */
export interface Held {
  readonly what: string;
  readonly life: number;
  told: Told;
}

export interface Prompted {
  readonly session: SessionId;
  readonly runId: RunId;
  readonly key: string | undefined;
  readonly accepted: Held;
  readonly outcome: Held;
}

/** A cancel of one run. `open`: when it was requested, the run's work had not ended and the log had no outcome. */
export interface Cancelled {
  readonly runId: RunId;
  readonly open: boolean;
  readonly receipt: Held;
}

/** A change of the queue, the mode or the inbox, or an answer to a question: and which event records it. */
export interface Changed {
  readonly session: SessionId;
  readonly event: Recorded["type"];
  /** What the event must contain to be this change. */
  readonly like: Readonly<Record<string, unknown>>;
  readonly receipt: Held;
}

export interface Followed {
  readonly session: SessionId;
  /** Positions it was given, gaps as pairs. */
  readonly heard: (Seq | { readonly from: Seq; readonly to: Seq })[];
  readonly after: Seq;
  readonly ended: Held;
}

export interface History {
  readonly held: readonly Held[];
  readonly prompts: readonly Prompted[];
  readonly cancels: readonly Cancelled[];
  readonly changes: readonly Changed[];
  readonly followed: readonly Followed[];
  /** All that was ever appended, also what was trimmed. */
  readonly logs: ReadonlyMap<SessionId, readonly Recorded[]>;
  /** Turns, calls and processes that were carried out, in order, one entry each time. */
  readonly carriedOut: readonly { readonly id: string; readonly life: number }[];
  /** Whether an append can have happened although its asker was told `unavailable`. */
  readonly answersLost: boolean;
  /** Whether the store itself has said `internal`; else nobody may be told that there is a fault in Belay. */
  readonly saidInternal: boolean;
  /** Lives that ended without a word: what was asked of them need not be answered. */
  readonly crashed: ReadonlySet<number>;
  /** Lives that were closed while the store did not answer: a stop that was not recorded by then never is. */
  readonly closedUnanswered: ReadonlySet<number>;
}

/** Keeps what becomes of a promise, and sees to it that nobody is punished for not looking. */
export function hold(what: string, life: number, promise: Promise<unknown>): Held {
  const held: Held = { what, life, told: { kind: "waiting" } };
  promise.then(
    (value) => {
      held.told = { kind: "value", value };
    },
    (error: unknown) => {
      held.told =
        error instanceof ControlError
          ? { kind: "refused", code: error.code, message: error.message }
          : { kind: "raw", error: String(error) };
    },
  );
  return held;
}

export function acceptedOf({ accepted: { told } }: Prompted): Accepted | undefined {
  return told.kind === "value" ? (told.value as Accepted) : undefined;
}

export function queueReceiptOf({ told }: Held): QueueReceipt | undefined {
  return told.kind === "value" ? (told.value as QueueReceipt) : undefined;
}
