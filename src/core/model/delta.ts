// What followers receive besides events: deltas, which may be dropped, and gaps, which mark removed events.
import type { CallId, ProcessId, RunId, Seq, TurnId } from "./ids.ts";
import type { Json } from "./prompt.ts";

/** A live-only fragment. It may be dropped, and nothing is ever rebuilt from it. */
export type Delta =
  /** The next piece of an answer. `reasoning`: of the model's reasoning. */
  | {
      readonly type: "delta";
      readonly runId: RunId;
      readonly turnId: TurnId;
      readonly text: string;
      /** Characters of this kind that the turn had sent before: a follower that reconnects drops repeats by it. */
      readonly from: number;
      readonly kind?: "reasoning";
    }
  /** The progress of a call, in the tool's own format. */
  | { readonly type: "progress"; readonly runId: RunId; readonly callId: CallId; readonly data: Json }
  /** The output of a process so far. Sent soon after the start, then at growing intervals. */
  | {
      readonly type: "output";
      readonly processId: ProcessId;
      readonly bytes: number;
      readonly lines: number;
      readonly silenceMs: number;
      readonly tail: string;
    };

/** Sent once, in place of events that retention has removed. The next event is the one after `to`. */
export interface Gap {
  readonly type: "gap";
  readonly from: Seq;
  readonly to: Seq;
}
