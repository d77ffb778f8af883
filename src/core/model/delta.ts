// What followers hear besides facts: fragments that may be dropped, and the one notice that something is missing.
import type { CallId, ProcessId, RunId, Seq, TurnId } from "./ids.ts";
import type { Json } from "./prompt.ts";

/** A live-only fragment. May be dropped; never needed to rebuild anything. */
export type Delta =
  /** The next piece of an answer; `reasoning` is what the model says to itself. */
  | {
      readonly type: "delta";
      readonly runId: RunId;
      readonly turnId: TurnId;
      readonly text: string;
      /** How many characters of this kind the turn had said before: whoever joins again hears nothing twice. */
      readonly from: number;
      readonly kind?: "reasoning";
    }
  /** How far a call is, in its own words. */
  | { readonly type: "progress"; readonly runId: RunId; readonly callId: CallId; readonly data: Json }
  /** What a process has said so far: soon after it began, and then ever less often. */
  | {
      readonly type: "output";
      readonly processId: ProcessId;
      readonly bytes: number;
      readonly lines: number;
      readonly silenceMs: number;
      readonly tail: string;
    };

/** Said once, in place of events that retention has removed: the next event follows `to`. */
export interface Gap {
  readonly type: "gap";
  readonly from: Seq;
  readonly to: Seq;
}
