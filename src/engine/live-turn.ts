// One turn that is going on: what the agent is given, and what becomes of what it says.
import type { CancelReason, Outcome } from "../core/cancel.ts";
import { ControlError } from "../core/control-error.ts";
import type { TurnEnd } from "../core/decide-run.ts";
import type { Usage } from "../core/event.ts";
import { type CallId, callId as makeCallId, type TurnId } from "../core/ids.ts";
import { EXTEND_EVERY_MS, TURN_CHARS_MAX } from "../core/limits.ts";
import type { Json, Prompt } from "../core/prompt.ts";
import type { About, Ending } from "../core/question.ts";
import type { Run } from "../core/run.ts";
import type { Message } from "../core/transcript.ts";
import type { Agent, CallOptions, CallRequest, CallResult, Execute } from "../ports.ts";
import type { TurnProcesses } from "../spawner.ts";
import { type CallDesk, failure, LiveCall } from "./live-call.ts";
import { LiveWork, type WorkOwner } from "./live-work.ts";
import type { Ended, Scope } from "./scope.ts";
import { TurnFacade } from "./turn-facade.ts";
import { askOf, checkCall, checkMeter, checkResult, type Metered, type Result } from "./turn-result.ts";
import { invalid } from "./validate.ts";

/** What a turn needs from the engine; what it asks answers when it is durable. */
export interface TurnDesk extends Omit<CallDesk, "inquire"> {
  readonly agent: Agent;
  readonly graceMs: number;
  /** The run as it is decided now; undefined once it is over. */
  run(): Run | undefined;
  extend(text: string, usage: Usage | undefined): Promise<unknown>;
  take(): Promise<readonly Prompt[]>;
  call(live: LiveCall, request: CallRequest): void;
  compact(summary: string): Promise<void>;
  stop(note: string): Promise<void>;
  inquire(scope: Scope, owner: TurnId | CallId, about: About, deadlineMs: number | undefined): Promise<Ending>;
  transcript(): Promise<readonly Message[]>;
  /** The answer the log has to this call, if it was made before a crash. */
  recorded(name: string, input: Json, options: CallOptions): Promise<CallResult | undefined>;
  turnProcesses(turn: TurnHolder): TurnProcesses;
  delta(said: Said): void;
  turnEnded(turn: LiveTurn, ended: Ended<unknown>): void;
  turnGivenUp(turn: LiveTurn, outcome: Outcome): void;
}

interface TurnHolder {
  readonly turnId: TurnId;
  readonly scope: Scope;
  isOver(): boolean;
}

/** A piece of an answer, and how much of its kind came before it. */
export interface Said {
  readonly text: string;
  readonly from: number;
  readonly kind: "text" | "reasoning";
}

/** How it ended, and what it wants done before the next one. */
export interface Finished {
  readonly end: TurnEnd;
  readonly calls: readonly LiveCall[];
}

export class LiveTurn implements WorkOwner {
  readonly turnId: TurnId;
  readonly run: Run;
  readonly desk: TurnDesk;
  readonly work: LiveWork;
  #text = "";
  #came: readonly Prompt[];
  #dropped = 0;
  /** Models' streams may break between the halves of a character: the first one waits here for the second. */
  readonly #half = { text: "", reasoning: "" };
  /** Characters it has said to itself. */
  #thought = 0;
  #calls = 0;
  /** How much of the text is on its way into the log. */
  #kept = 0;
  #takeBackExtend: (() => void) | undefined = undefined;
  #meter: () => unknown = nothing;

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

  get processes(): TurnProcesses {
    const { turnId, work } = this;
    return this.desk.turnProcesses({ turnId, scope: work.scope, isOver: () => work.phase === "ended" });
  }

  /** What it has said so far. */
  get text(): string {
    return this.#text;
  }

  /** How the turn ended, with all it has said and asked for. */
  finish(ended: Ended<unknown>): Finished {
    switch (ended.kind) {
      case "completed":
        return this.#completed(ended.value);
      case "failed":
        return { end: this.settled(failure(ended.error)), calls: [] };
      case "cancelled":
        return { end: this.settled({ kind: "cancelled", reason: ended.reason }), calls: [] };
    }
  }

  /** An end without a result of its own: what it has said, and what it is known to have cost, is kept. */
  settled(outcome: Outcome): TurnEnd {
    this.#hush();
    // @fault usage-lost-with-the-stop
    return { turnId: this.turnId, outcome, next: "end", text: this.#wholeText(), ...this.#metered() };
  }

  /** Sends what it has said to the log, for a turn that is set down rather than ended. */
  keep(): Promise<void> {
    this.#takeBackExtend?.();
    return this.#extend();
  }

  meter(read: () => unknown): void {
    if (typeof read !== "function") throw invalid("meter() takes a function.");
    this.#meter = read;
  }

  emit(given: string, kind: Said["kind"] = "text"): void {
    if (typeof given !== "string") throw invalid("emit() takes a string.");
    if (kind !== "text" && kind !== "reasoning") throw invalid('emit() takes "text" or "reasoning" as its kind.');
    if (this.work.phase !== "live" && this.work.phase !== "stopping") return; // Given up: nobody listens any more.
    const whole = this.#half[kind] + given;
    const cut = /[\ud800-\udbff]/.test(whole.slice(-1)) ? whole.length - 1 : whole.length;
    this.#half[kind] = whole.slice(cut);
    this.#say(whole.slice(0, cut).toWellFormed(), kind);
  }

  #say(text: string, kind: Said["kind"]): void {
    if (text === "") return;
    this.desk.delta({ text, kind, from: kind === "text" ? this.#text.length + this.#dropped : this.#thought });
    if (kind === "reasoning") {
      this.#thought += text.length;
      return;
    }
    const room = TURN_CHARS_MAX - this.#text.length;
    this.#text += text.slice(0, room).toWellFormed();
    this.#dropped += Math.max(0, text.length - room);
    this.#takeBackExtend ??= this.desk.clock.after(EXTEND_EVERY_MS, () => void this.#extend());
  }

  async call(name: string, given: Json, execute: Execute, options: CallOptions = {}): Promise<CallResult> {
    const request = checkCall({ ...options, name, input: given, execute });
    // @fault finished-call-repeated
    if (this.run.recoveries > 0 && options.again !== "begin") {
      const recorded = await this.desk.recorded(name, request.input, options);
      if (recorded !== undefined) return recorded;
    }
    const run = this.desk.run();
    const asked = this.work.scope.reason ?? (run?.phase === "stopping" ? run.reason : undefined);
    const callId = this.#nextCallId();
    // Nothing new begins once a stop was asked for, whether or not it is recorded yet.
    if (asked !== undefined) return { kind: "cancelled", callId, reason: asked, partial: undefined, abandoned: false };
    // It may have ended while the log was read, and a later turn must not get its calls.
    // @fault call-of-an-ended-turn
    if (this.work.phase === "ended")
      throw new ControlError("busy", `${this.turnId} has ended and begins no new calls.`);
    const live = new LiveCall(callId, name, request, this.desk);
    const result = live.result();
    // What was said before it stands before it in the log, for whoever reads it again.
    void this.keep();
    this.desk.call(live, request);
    return result;
  }

  /** Counted here, not read off the state: two calls of one tick must not get one id. */
  #nextCallId(): CallId {
    this.#calls = Math.max(this.#calls, (this.desk.run() ?? this.run).calls) + 1;
    return makeCallId(this.run.id, this.#calls);
  }

  #completed(value: unknown): Finished {
    let result: Result;
    try {
      result = checkResult(value);
    } catch (error) {
      return { end: this.settled(failure(error)), calls: [] };
    }
    this.#hush();
    const { requests, finish, parts, usage, next } = result;
    const calls = requests.map((request) => new LiveCall(this.#nextCallId(), request.name, request, this.desk));
    const end: TurnEnd = {
      turnId: this.turnId,
      outcome: completed(next === "end" ? finish : undefined),
      next,
      text: result.text === undefined ? this.#wholeText() : bounded(result.text),
      ...(usage === undefined ? {} : { usage }),
      ...(finish === undefined ? {} : { finish }),
      ...(parts === undefined ? {} : { parts }),
      ...(calls.length === 0 ? {} : { calls: calls.map((live, index) => askOf(live.callId, requests[index])) }),
    };
    return { end, calls };
  }

  async #extend(): Promise<void> {
    this.#takeBackExtend = undefined;
    const from = this.#kept;
    this.#kept = this.#text.length;
    try {
      if (this.#kept > from) await this.desk.extend(this.#text.slice(from), this.#metered().usage);
    } catch {
      // The store is in trouble, which its own notice says. Nothing is lost: the piece goes with the next one.
      this.#kept = Math.min(this.#kept, from);
    }
  }

  #metered(): Metered {
    try {
      return checkMeter(this.#meter());
    } catch {
      // The agent's own reckoning failed; that must not change how its turn ends.
      return {};
    }
  }

  /** It says no more: nothing comes to make whole what is half. */
  #hush(): void {
    for (const kind of ["text", "reasoning"] as const) {
      this.#say(this.#half[kind].toWellFormed(), kind);
      this.#half[kind] = "";
    }
    this.#takeBackExtend?.();
  }

  #wholeText(): string {
    return withDropped(this.#text, this.#dropped);
  }
}

/** As much of a returned text as is kept of one that is emitted, and the same words for the rest. */
const bounded = (text: string): string =>
  withDropped(text.slice(0, TURN_CHARS_MAX).toWellFormed(), Math.max(0, text.length - TURN_CHARS_MAX));

const withDropped = (text: string, dropped: number): string =>
  dropped === 0 ? text : `${text}\n[${dropped} more characters were not kept]`;

/** A model that did not end its answer by itself has not quite completed it: that is said with the outcome. */
function completed(finish: Result["finish"]): Outcome {
  if (finish === undefined || finish === "stop" || finish === "calls") return { kind: "completed" };
  return { kind: "completed", finish };
}

const nothing = (): undefined => undefined;
