// The view of one call, folded from the events of its run.
import type { CancelReason, Outcome } from "../model/cancel.ts";
import type { Recorded } from "../model/event.ts";
import { type CallId, type RunId, runOf, type SessionId } from "../model/ids.ts";
import type { Json } from "../model/prompt.ts";
import type { CallWaitsFor } from "./explained.ts";
import type { Moment } from "./run-view.ts";

export interface CallView {
  readonly id: CallId;
  readonly session: SessionId;
  readonly run: RunId;
  readonly tool: string;
  readonly input: Json;
  /** The model's id of the call. */
  readonly providerCallId?: string;
  /** `waiting`: it has not begun; `waits` says what for. */
  readonly phase: "waiting" | "running" | "stopping" | "settled";
  readonly waits?: CallWaitsFor;
  /** When this phase began; for `waiting` and `running`, when the call was requested. */
  readonly since: Moment;
  readonly requested: Moment;
  readonly settled: Moment | undefined;
  /** Why it is being stopped, or was. */
  readonly reason: CancelReason | undefined;
  readonly outcome: Outcome | undefined;
  /** It ended without having begun: nothing was done. */
  readonly begun?: false;
  readonly result?: Json;
  readonly changes?: readonly string[];
}

type Wanted = Extract<Recorded, { type: "call.requested" }>;

/**
 * Finds one call in the events of its session, by Belay's id or by the model's id. If several calls have the model's
 * id, live calls are preferred, and the last of them is taken.
 */
export class CallReader {
  readonly #session: SessionId;
  readonly #isMeant: (event: Wanted) => boolean;
  readonly #views = new Map<CallId, CallView>();

  constructor(session: SessionId, isMeant: (event: Wanted) => boolean) {
    this.#session = session;
    this.#isMeant = isMeant;
  }

  note(event: Recorded): void {
    const moment = { seq: event.seq, at: event.at };
    if (event.type === "call.requested" && this.#isMeant(event)) {
      this.#views.set(event.callId, this.#begun(event, moment));
    } else if (event.type === "call.cancel_requested") {
      this.#stop(event.callId, event.reason, moment);
    } else if (event.type === "run.cancel_requested") {
      for (const { id, run } of this.#views.values()) if (run === event.runId) this.#stop(id, event.reason, moment);
    } else if (event.type === "call.settled") {
      this.#settle(event, moment);
    }
  }

  get live(): readonly CallView[] {
    return [...this.#views.values()].filter(({ phase }) => phase !== "settled");
  }

  get view(): CallView | undefined {
    return this.live.at(-1) ?? [...this.#views.values()].at(-1);
  }

  #begun({ callId, name, input, provider }: Wanted, requested: Moment): CallView {
    const named = provider === undefined ? {} : { providerCallId: provider.id };
    const open = { settled: undefined, reason: undefined, outcome: undefined };
    const about = { id: callId, session: this.#session, run: runOf(callId), tool: name, input, ...named };
    return { ...about, phase: "running", since: requested, requested, ...open };
  }

  #stop(callId: CallId, reason: CancelReason, since: Moment): void {
    const view = this.#views.get(callId);
    if (view?.phase === "running") this.#views.set(callId, { ...view, phase: "stopping", reason, since });
  }

  #settle({ callId, outcome, begun, result, changes }: Extract<Recorded, { type: "call.settled" }>, at: Moment): void {
    const view = this.#views.get(callId);
    if (view === undefined) return;
    const reason = outcome.kind === "cancelled" ? (view.reason ?? outcome.reason) : view.reason;
    this.#views.set(callId, {
      ...view,
      phase: "settled",
      since: at,
      settled: at,
      reason,
      outcome,
      ...(begun === false ? { begun } : {}),
      ...(result === undefined ? {} : { result }),
      ...(changes === undefined ? {} : { changes }),
    });
  }
}
