// The port for the host: hooks around calls and runs, and notices. Types only.
import type { Blocked, CancelReason, Outcome } from "../core/model/cancel.ts";
import type { CallId, RunId, SessionId, TurnId } from "../core/model/ids.ts";
import type { Json } from "../core/model/prompt.ts";
import type { CallDetails } from "./agent.ts";

/** Callbacks of the host. Each has a time limit; a hook that throws or times out is reported as a notice. */
export interface Hooks {
  /**
   * Before a call begins, and before its approval is requested: it may deny the call or replace its input. If it
   * throws, takes too long or returns anything else, the call is not executed.
   */
  beforeCall?(call: HookedCall): Promise<Verdict | undefined | void> | Verdict | undefined | void;
  /** After a call has settled. */
  afterCall?(call: HookedCall & { readonly outcome: Outcome; readonly result?: Json }): Promise<void> | void;
  /** When the cancel of a run or a call has been recorded; also when a queued run or a waiting steer is withdrawn. */
  onCancel?(cancel: {
    readonly sessionId: SessionId;
    readonly runId: RunId;
    readonly callId?: CallId;
    readonly reason: CancelReason;
  }): Promise<void> | void;
  /** When the outcome of a run has been recorded. */
  onOutcome?(end: {
    readonly sessionId: SessionId;
    readonly runId: RunId;
    readonly outcome: Outcome;
    /** The caller's key for its prompt. */
    readonly key?: string;
    /** The last turn, and its text up to 16 Ki characters. Absent: the run had no turn. */
    readonly turnId?: TurnId;
    readonly text?: string;
    /** `text` was cut. */
    readonly truncated?: true;
  }): Promise<void> | void;
  onSessionEnd?(end: { readonly sessionId: SessionId; readonly reason: CancelReason }): Promise<void> | void;
}

export interface HookedCall extends CallDetails {
  readonly sessionId: SessionId;
  readonly runId: RunId;
  readonly signal: AbortSignal;
}

export type Verdict =
  | { readonly kind: "deny"; readonly note: string }
  /** `input` replaces the input of the model; `approved`: no approval is required. */
  | { readonly kind: "allow"; readonly input?: Json; readonly approved?: boolean };

/** Information for the operator, never the user: a late result, a hook that threw, a failing store. */
export type Notice =
  | { readonly type: "late"; readonly runId: RunId; readonly work: string; readonly outcome: Outcome["kind"] }
  /** Without a session: the stored data was removed, or belongs to another program now. */
  | { readonly type: "store"; readonly session?: SessionId; readonly code: string; readonly message: string }
  | { readonly type: "hook"; readonly hook: keyof Hooks; readonly session: SessionId; readonly message: string }
  /** `warning`: commands can access what they should not, for as long as this Belay is open. */
  | { readonly type: "process"; readonly message: string; readonly warning?: true }
  | { readonly type: "directory"; readonly message: string }
  | ({ readonly type: "blocked" } & Blocked)
  | { readonly type: "bug"; readonly session: SessionId; readonly error: unknown };

export type Notify = (notice: Notice) => void;
