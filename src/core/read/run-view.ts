// The view of one run: its prompt, key, times, outcome and answer. Folded from the run's events and its row, so that it
// cannot contradict the log.

import { RUN_CALLS_MAX } from "../limits.ts";
import type { CancelReason } from "../model/cancel.ts";
import type { Event, ModelName, Recorded, Usage } from "../model/event.ts";
import type { CallId, Seq, TurnId } from "../model/ids.ts";
import type { Delivery, Prompt } from "../model/prompt.ts";
import type { RunRow } from "../model/rows.ts";
import { beginText, extendText, type TurnText, textOf } from "./run-end.ts";
import type { CallState } from "./transcript.ts";

/** A position in the log, and the time of its event: wall clock, ms. */
export interface Moment {
  readonly seq: Seq;
  readonly at: number;
}

export interface RunView extends RunRow {
  /** Undefined: its events were removed by a trim or by retention. */
  readonly prompt: Prompt | undefined;
  readonly delivery: Delivery | undefined;
  readonly accepted: Moment | undefined;
  /** Undefined: it has not begun. */
  readonly started: Moment | undefined;
  readonly settled: Moment | undefined;
  /** Why it is being stopped, or was. */
  readonly reason: CancelReason | undefined;
  /** Its last turn, and the text of that turn so far, up to RUN_TEXT_CHARS_MAX. */
  readonly turnId: TurnId | undefined;
  readonly text: string | undefined;
  /** `text` was cut: `run.text()` has all of it. */
  readonly truncated?: true;
  readonly turns: number;
  /** The cost of its turns so far, for each model. */
  readonly usage: readonly ModelUsage[];
  /** Its latest calls, oldest first, at most RUN_CALLS_MAX. */
  readonly calls: readonly RunCall[];
  /** Number of earlier calls that are not listed. */
  readonly callsOmitted: number;
  /** Some of its events were removed by a trim or by retention, so this view is incomplete. */
  readonly incomplete?: true;
}

export interface ModelUsage extends Usage {
  /** Undefined: the agent did not name one. */
  readonly model: ModelName | undefined;
  readonly turns: number;
}

export interface RunCall {
  readonly callId: CallId;
  readonly tool: string;
  /** The model's id of the call. */
  readonly providerCallId?: string;
  readonly outcome: CallState;
  readonly requested: Moment;
  readonly settled: Moment | undefined;
}

/** Reads the events of one session, in order, and keeps those of one run. */
export class RunReader {
  readonly #row: RunRow;
  readonly #calls = new Map<CallId, RunCall>();
  readonly #usage = new Map<string, ModelUsage>();
  #asked: Pick<RunView, "prompt" | "delivery" | "accepted"> | undefined;
  #started: Moment | undefined;
  #settled: Moment | undefined;
  #reason: CancelReason | undefined;
  #last: TurnText | undefined;
  #whole = "";
  #turns = 0;
  #omitted = 0;
  /** The cost of the live turn so far. */
  #live: Pick<Extract<Event, { type: "turn.extended" }>, "usage" | "model"> | undefined;

  constructor(row: RunRow) {
    this.#row = row;
  }

  note(event: Recorded): void {
    if (!("runId" in event) || event.runId !== this.#row.id) return;
    const moment = { seq: event.seq, at: event.at };
    switch (event.type) {
      case "run.accepted":
        this.#asked = { prompt: event.prompt, delivery: event.delivery, accepted: moment };
        return;
      case "run.edited":
        if (this.#asked !== undefined) this.#asked = { ...this.#asked, prompt: event.prompt };
        return;
      case "run.started":
        this.#started = moment;
        return;
      case "run.cancel_requested":
        this.#reason = event.reason;
        return;
      case "run.settled":
        this.#settled = moment;
        if (event.outcome.kind === "cancelled") this.#reason ??= event.outcome.reason;
        return;
      case "call.requested":
        this.#call(event, moment);
        return;
      case "call.settled":
        this.#settleCall(event.callId, { outcome: event.outcome, settled: moment });
        return;
      default:
        this.#turn(event);
    }
  }

  /** The whole text of its last turn. */
  get text(): string {
    return this.#whole;
  }

  get view(): RunView {
    const usage = new Map(this.#usage);
    if (this.#live?.usage !== undefined) addUsage(usage, this.#live.usage, this.#live.model);
    const { text, turnId, truncated } = this.#last ?? {};
    return {
      ...this.#row,
      ...(this.#asked ?? { prompt: undefined, delivery: undefined, accepted: undefined }),
      started: this.#started,
      settled: this.#settled,
      reason: this.#reason,
      turnId,
      text,
      ...(truncated === true ? { truncated } : {}),
      turns: this.#turns,
      usage: [...usage.values()],
      calls: [...this.#calls.values()],
      callsOmitted: this.#omitted,
      ...(this.#asked === undefined ? { incomplete: true } : {}),
    };
  }

  #turn(event: Recorded): void {
    if (event.type === "turn.requested") {
      this.#turns += 1;
      this.#last = beginText(event.turnId);
      this.#whole = "";
    } else if (event.type === "turn.extended") {
      this.#last = extendText(this.#last ?? beginText(event.turnId), event.text);
      this.#whole += event.text;
      this.#live = { ...this.#live, ...known(event) };
    } else if (event.type === "turn.settled") {
      this.#whole = event.text ?? this.#whole;
      this.#last = textOf(event.turnId, this.#whole);
      this.#live = undefined;
      if (event.usage !== undefined) addUsage(this.#usage, event.usage, event.model);
    }
  }

  #call({ callId, name, provider }: Extract<Recorded, { type: "call.requested" }>, requested: Moment): void {
    const named = provider === undefined ? {} : { providerCallId: provider.id };
    const running = { outcome: { kind: "running" }, requested, settled: undefined } as const;
    this.#calls.set(callId, { callId, tool: name, ...named, ...running });
    const [oldest] = this.#calls.keys();
    if (this.#calls.size <= RUN_CALLS_MAX || oldest === undefined) return;
    this.#calls.delete(oldest);
    this.#omitted += 1;
  }

  #settleCall(callId: CallId, end: Pick<RunCall, "outcome" | "settled">): void {
    const call = this.#calls.get(callId);
    if (call !== undefined) this.#calls.set(callId, { ...call, ...end });
  }
}

function known({ usage, model }: Extract<Event, { type: "turn.extended" }>) {
  return { ...(usage === undefined ? {} : { usage }), ...(model === undefined ? {} : { model }) };
}

function addUsage(sums: Map<string, ModelUsage>, usage: Usage, model: ModelName | undefined): void {
  const name = JSON.stringify([model?.provider, model?.id]);
  const before = sums.get(name);
  sums.set(name, {
    model,
    turns: (before?.turns ?? 0) + 1,
    inputTokens: (before?.inputTokens ?? 0) + usage.inputTokens,
    outputTokens: (before?.outputTokens ?? 0) + usage.outputTokens,
    estimated: (before?.estimated ?? false) || usage.estimated,
  });
}
