// One tool call that is going on: it runs, and whatever becomes of it is recorded before its turn hears of it.
import type { CancelReason, Outcome } from "../core/cancel.ts";
import { ControlError, toControlError } from "../core/control-error.ts";
import type { CallEnd } from "../core/decide-run.ts";
import type { CallId } from "../core/ids.ts";
import type { Json } from "../core/prompt.ts";
import type { CallResult, Execute, LiveCall as Facade } from "../ports.ts";
import { LiveWork, type WorkOwner } from "./live-work.ts";
import type { Ended } from "./scope.ts";
import { checkCallJson } from "./validate.ts";

/** How a call's end reaches the log. */
export interface CallDesk {
  /** It ended by itself. Undefined: it comes too late to count, and nothing is recorded. */
  ended(work: LiveWork, end: CallEnd): Promise<unknown> | undefined;
  gaveUp(work: LiveWork, end: CallEnd): Promise<unknown>;
}

export class LiveCall implements WorkOwner {
  readonly callId: CallId;
  readonly name: string;
  readonly input: Json;
  readonly work: LiveWork;
  readonly #execute: Execute;
  readonly #desk: CallDesk;
  #partial: Json | undefined = undefined;
  #answer: (result: CallResult) => void = ignore;
  #fail: (error: unknown) => void = ignore;

  constructor(asked: Pick<LiveCall, "callId" | "name" | "input">, execute: Execute, desk: CallDesk) {
    this.callId = asked.callId;
    this.name = asked.name;
    this.input = asked.input;
    this.#execute = execute;
    this.#desk = desk;
    this.work = new LiveWork(asked.callId, asked.name, this);
  }

  /** Resolves once the call's end is durable. Asked for once, by the turn that called. */
  result(): Promise<CallResult> {
    return new Promise((resolve, reject) => {
      this.#answer = resolve;
      this.#fail = reject;
    });
  }

  /** It never came into being: the run takes no new calls, or the store could not record it. */
  refuse(error: unknown): void {
    this.#fail(toControlError(error));
  }

  begin(): void {
    const { scope } = this.work;
    void scope.carryOut(() => this.#execute(new CallFacade(this))).then((ended) => this.#ended(ended));
  }

  giveUp(reason: CancelReason, how: "unbegun" | "abandoned"): void {
    const outcome: Outcome =
      how === "unbegun" ? { kind: "cancelled", reason } : { kind: "cancelled", reason, abandoned: [this.name] };
    this.#settle(this.#desk.gaveUp(this.work, this.#end(outcome, this.#partial)), outcome, this.#partial);
  }

  keepPartial(result: Json): void {
    this.#partial = checkCallJson(result, `The partial result of ${this.name}`);
  }

  #ended(ended: Ended<unknown>): void {
    const { outcome, result } = this.#outcomeOf(ended);
    const recorded = this.#desk.ended(this.work, this.#end(outcome, result));
    // Too late to count: the turn is told what giving it up has recorded, and nothing else.
    if (recorded !== undefined) this.#settle(recorded, outcome, result);
  }

  #settle(recorded: Promise<unknown>, outcome: Outcome, result: Json | undefined): void {
    recorded.then(
      () => this.#answer(toResult(this.callId, outcome, result)),
      (error: unknown) => this.#fail(toControlError(error)),
    );
  }

  #outcomeOf(ended: Ended<unknown>): { readonly outcome: Outcome; readonly result: Json | undefined } {
    if (ended.kind === "cancelled") {
      return { outcome: { kind: "cancelled", reason: ended.reason }, result: this.#partial };
    }
    if (ended.kind === "failed") return { outcome: failure(ended.error), result: this.#partial };
    try {
      const { value } = ended;
      const result = value === undefined ? undefined : checkCallJson(value, `The result of ${this.name}`);
      return { outcome: { kind: "completed" }, result };
    } catch (error) {
      return { outcome: failure(error), result: this.#partial };
    }
  }

  #end(outcome: Outcome, result: Json | undefined): CallEnd {
    return result === undefined ? { callId: this.callId, outcome } : { callId: this.callId, outcome, result };
  }
}

/** What a tool sees. Getters, so that it can be taken apart: `({ signal, input }) => …`. */
class CallFacade implements Facade {
  readonly #call: LiveCall;

  constructor(call: LiveCall) {
    this.#call = call;
  }

  get callId(): CallId {
    return this.#call.callId;
  }

  get input(): Json {
    return this.#call.input;
  }

  get signal(): AbortSignal {
    return this.#call.work.scope.signal;
  }

  get partial(): Facade["partial"] {
    return (result) => this.#call.keepPartial(result);
  }
}

export function toResult(callId: CallId, outcome: Outcome, result: Json | undefined): CallResult {
  switch (outcome.kind) {
    case "completed":
      return { kind: "completed", callId, value: result };
    case "failed":
      return { kind: "failed", callId, message: outcome.message };
    case "cancelled":
      return {
        kind: "cancelled",
        callId,
        reason: outcome.reason,
        partial: result,
        abandoned: outcome.abandoned !== undefined,
      };
    case "lost":
      return { kind: "lost", callId };
  }
}

/** What a person or a model can use: the message, not the stack. */
export function failure(error: unknown): Outcome {
  const code = error instanceof ControlError ? error.code : "error";
  const message = error instanceof Error ? error.message : String(error);
  return { kind: "failed", code, message: (message || "It failed without a message.").toWellFormed().slice(0, 4096) };
}

const ignore = (): void => {};
