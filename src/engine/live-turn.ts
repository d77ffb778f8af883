// One turn that is going on: what the agent is given, and what becomes of what it says.
import type { CancelReason, Outcome } from "../core/cancel.ts";
import { ControlError } from "../core/control-error.ts";
import type { TurnEnd } from "../core/decide-run.ts";
import { callId as makeCallId, type TurnId } from "../core/ids.ts";
import { EXTEND_EVERY_MS, TURN_CHARS_MAX } from "../core/limits.ts";
import type { Json, Prompt } from "../core/prompt.ts";
import type { Run } from "../core/run.ts";
import type { Message } from "../core/transcript.ts";
import type { Agent, CallOptions, CallResult, Clock, Execute, Turn, TurnResult } from "../ports.ts";
import { type CallDesk, failure, LiveCall } from "./live-call.ts";
import { LiveWork, type WorkOwner } from "./live-work.ts";
import type { Ended } from "./scope.ts";
import { TurnFacade } from "./turn-facade.ts";
import { checkCallJson, checkMs, invalid, isObject } from "./validate.ts";

/** What a turn needs from the engine; what it asks answers when it is durable. */
export interface TurnDesk extends CallDesk {
  readonly clock: Clock;
  readonly agent: Agent;
  readonly sessionId: Turn["sessionId"];
  /** The run as it is decided now; undefined once it is over. */
  run(): Run | undefined;
  extend(text: string): Promise<unknown>;
  take(): Promise<readonly Prompt[]>;
  call(live: LiveCall): void;
  cancelCall(live: LiveCall, limitMs: number): void;
  transcript(): Promise<readonly Message[]>;
  /** The answer the log has to this call, if it was made before a crash. */
  recorded(name: string, input: Json, options: CallOptions): Promise<CallResult | undefined>;
  delta(text: string): void;
  turnEnded(turn: LiveTurn, ended: Ended<unknown>): void;
  turnGivenUp(turn: LiveTurn, outcome: Outcome): void;
}

export class LiveTurn implements WorkOwner {
  readonly turnId: TurnId;
  readonly run: Run;
  readonly desk: TurnDesk;
  readonly work: LiveWork;
  #text = "";
  #came: readonly Prompt[];
  #dropped = 0;
  #calls = 0;
  /** How much of the text is on its way into the log. */
  #kept = 0;
  #takeBackExtend: (() => void) | undefined = undefined;

  constructor(desk: TurnDesk, run: Run, turnId: TurnId) {
    this.desk = desk;
    this.run = run;
    this.turnId = turnId;
    this.#came = run.taken;
    this.work = new LiveWork(turnId, "turn", this);
  }

  begin(): void {
    const { agent } = this.desk;
    void this.work.scope.carryOut(() => agent(new TurnFacade(this))).then((ended) => this.desk.turnEnded(this, ended));
  }

  giveUp(reason: CancelReason, how: "unbegun" | "abandoned"): void {
    this.desk.turnGivenUp(this, { kind: "cancelled", reason, ...(how === "abandoned" ? { abandoned: ["turn"] } : {}) });
  }

  /** What people sent for the run. First what was taken in when this turn was asked for, or by one that was cut off. */
  async takeSteers(): Promise<readonly Prompt[]> {
    const came = this.#came;
    this.#came = [];
    return [...came, ...(await this.desk.take())];
  }

  /** What it has said so far. */
  get text(): string {
    return this.#text;
  }

  /** How the turn ended, with all it has said. */
  end(ended: Ended<unknown>): TurnEnd {
    if (ended.kind === "completed") {
      return isResult(ended.value) ? this.#completed(ended.value) : this.settled(NOT_A_RESULT);
    }
    return this.settled(ended.kind === "failed" ? failure(ended.error) : { kind: "cancelled", reason: ended.reason });
  }

  settled(outcome: Outcome): TurnEnd {
    this.#takeBackExtend?.();
    return { turnId: this.turnId, outcome, next: "end", text: this.#wholeText() };
  }

  /** Sends what it has said to the log, for a turn that is set down rather than ended. */
  keep(): Promise<void> {
    this.#takeBackExtend?.();
    return this.#extend();
  }

  emit(given: string): void {
    if (typeof given !== "string") throw invalid("emit() takes a string.");
    if (this.work.phase !== "live" && this.work.phase !== "stopping") return; // Given up: nobody listens any more.
    const text = given.toWellFormed();
    const room = TURN_CHARS_MAX - this.#text.length;
    this.#text += text.length <= room ? text : text.slice(0, room);
    this.#dropped += Math.max(0, text.length - room);
    this.desk.delta(text);
    if (text !== "") this.#takeBackExtend ??= this.desk.clock.after(EXTEND_EVERY_MS, () => void this.#extend());
  }

  async call(name: string, given: Json, execute: Execute, options: CallOptions = {}): Promise<CallResult> {
    const input = checkCall(name, given, execute, options);
    if (this.run.recoveries > 0 && options.again !== "begin") {
      const recorded = await this.desk.recorded(name, input, options);
      if (recorded !== undefined) return recorded;
    }
    const run = this.desk.run();
    const asked = this.work.scope.reason ?? (run?.phase === "stopping" ? run.reason : undefined);
    // Counted here, not read off the state: two calls of one tick must not get one id.
    this.#calls = Math.max(this.#calls, (run ?? this.run).calls) + 1;
    const callId = makeCallId(this.run.id, this.#calls);
    // Nothing new begins once a stop was asked for, whether or not it is recorded yet.
    if (asked !== undefined) return { kind: "cancelled", callId, reason: asked, partial: undefined, abandoned: false };
    // It may have ended while the log was read, and a later turn must not get its calls.
    if (this.work.phase === "ended")
      throw new ControlError("busy", `${this.turnId} has ended and begins no new calls.`);
    const live = new LiveCall({ callId, name, input }, execute, this.desk);
    const result = live.result();
    this.desk.call(live);
    return options.timeoutMs === undefined ? result : this.#limited(live, result, options.timeoutMs);
  }

  async #limited(live: LiveCall, result: Promise<CallResult>, limitMs: number): Promise<CallResult> {
    const takeBack = this.desk.clock.after(limitMs, () => this.desk.cancelCall(live, limitMs));
    try {
      return await result;
    } finally {
      takeBack();
    }
  }

  #completed(value: TurnResult | string | undefined): TurnEnd {
    this.#takeBackExtend?.();
    const result: TurnResult = typeof value === "string" ? { text: value } : (value ?? {});
    const text = result.text ?? this.#wholeText();
    return {
      turnId: this.turnId,
      outcome: { kind: "completed" },
      next: result.next ?? "end",
      text: text.toWellFormed().slice(0, TURN_CHARS_MAX),
      ...(result.usage === undefined ? {} : { usage: result.usage }),
    };
  }

  async #extend(): Promise<void> {
    this.#takeBackExtend = undefined;
    const from = this.#kept;
    this.#kept = this.#text.length;
    try {
      if (this.#kept > from) await this.desk.extend(this.#text.slice(from));
    } catch {
      // The store is in trouble, which its own notice says. Nothing is lost: the piece goes with the next one.
      this.#kept = Math.min(this.#kept, from);
    }
  }

  #wholeText(): string {
    return this.#dropped === 0 ? this.#text : `${this.#text}\n[${this.#dropped} more characters were not kept]`;
  }
}

function checkCall(name: string, given: Json, execute: Execute, options: CallOptions): Json {
  if (typeof name !== "string" || name === "" || name.length > 256) throw invalid("A call's name is a short string.");
  if (typeof execute !== "function") throw invalid("A call needs a function to execute.");
  if (options.timeoutMs !== undefined) checkMs(options.timeoutMs, "timeoutMs", 2 ** 40);
  return checkCallJson(given ?? null, `The input of ${name}`);
}

function isResult(value: unknown): value is TurnResult | string | undefined {
  if (value === undefined || typeof value === "string") return true;
  if (!isObject(value)) return false;
  const { text, next, usage, ...rest } = value;
  return (
    Object.keys(rest).length === 0 &&
    (text === undefined || typeof text === "string") &&
    (next === undefined || next === "turn" || next === "end") &&
    (usage === undefined || isUsage(usage))
  );
}

const isUsage = (usage: unknown): boolean =>
  isObject(usage) && Number.isFinite(usage.inputTokens) && Number.isFinite(usage.outputTokens);

const NOT_A_RESULT: Outcome = {
  kind: "failed",
  code: "invalid",
  message: "The agent returned something that is neither text nor { text, next, usage }.",
};
