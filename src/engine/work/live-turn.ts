// One live turn: runs the agent, and records what it returns.

import { ControlError } from "../../core/errors.ts";
import { invalid } from "../../core/input.ts";
import { EXTEND_EVERY_MS, TURN_CHARS_MAX } from "../../core/limits.ts";
import type { CancelReason, CancelReceipt, Outcome } from "../../core/model/cancel.ts";
import type { Delta } from "../../core/model/delta.ts";
import { type CallId, callId as makeCallId, runOf, type TurnId } from "../../core/model/ids.ts";
import type { Json, JsonInput, Prompt } from "../../core/model/prompt.ts";
import type { Run } from "../../core/model/run.ts";
import type { TurnEnd } from "../../core/policy/decide-run.ts";
import type { Message } from "../../core/read/transcript.ts";
import type { Agent, CallCancelOptions, CallOptions, CallRequest, CallResult, Execute } from "../../ports/agent.ts";
import { LiveTranscript } from "../log/live-transcript.ts";
import { type Replay, readReplay } from "../log/replay.ts";
import type { SessionState } from "../log/session-state.ts";
import { TurnProcesses } from "../process/work-processes.ts";
import { failure, stoppedLike, toResult } from "./call-result.ts";
import { checkCallStop } from "./call-stop.ts";
import { LiveCall } from "./live-call.ts";
import { RunWork, type WorkHost } from "./run-work.ts";
import type { Ended, Returns } from "./scope.ts";
import { TurnFacade } from "./turn-facade.ts";
import { askOf, checkCall, checkMeter, checkResult, type Metered, type Result } from "./turn-result.ts";

type Kind = "text" | "reasoning";

/** The end of a turn, and the calls it requests before the next one. */
interface Finished {
  readonly end: TurnEnd;
  readonly calls: readonly LiveCall[];
}

/** Mostly there is no half character: shared. */
const NO_HALF = { text: "", reasoning: "" } as const;

export class LiveTurn extends RunWork implements Returns {
  declare readonly id: TurnId;
  /** The run as it was when the turn began. */
  readonly run: Run;
  readonly waitSignal = undefined;
  #text = "";
  #earlierSteers: readonly Prompt[];
  #dropped = 0;
  /** A model's stream may split a surrogate pair: the first half waits here for the second. */
  #pendingHalf: Readonly<Record<Kind, string>> = NO_HALF;
  /** Characters of reasoning that it has emitted. */
  #reasoningChars = 0;
  #calls = 0;
  #replay: Promise<Replay> | undefined = undefined;
  #cancelExtend: (() => void) | undefined = undefined;
  #meter: () => unknown = nothing;

  constructor(host: WorkHost, lane: SessionState, run: Run, id: TurnId) {
    super(host, lane, id, "turn");
    this.run = run;
    this.#earlierSteers = run.taken;
  }

  begin(): void {
    // Behind the gate: an agent that requests turn after turn without awaiting anything would starve the event loop.
    this.gate.pass(() => {
      void this.scope.execute(() => this.#start(), this).then((ended) => this.#ended(ended));
    });
  }

  /** Not called for a turn that was stopped by then. */
  #start(): ReturnType<Agent> {
    this.host.budget.watch?.began(this);
    return this.host.agent(new TurnFacade(this));
  }

  returned(): void {
    this.hasReturned = true;
    this.host.budget.watch?.ended(this);
  }

  abandon(reason: CancelReason, how: "unbegun" | "abandoned"): void {
    if (this.parks) return;
    const outcome: Outcome = { kind: "cancelled", reason, ...(how === "abandoned" ? { abandoned: ["turn"] } : {}) };
    void this.#settle(this.#end(outcome), []);
  }

  override outputSoFar(): Delta | undefined {
    if (this.#text === "" || (this.phase !== "live" && this.phase !== "stopping")) return undefined;
    // @fault joined-in-the-middle
    const delta = { type: "delta", runId: this.runId, turnId: this.id, text: this.#text, from: 0 } as const;
    return delta;
  }

  #ended(ended: Ended<unknown>): void {
    const { lane, host } = this;
    if (!host.drive.ended(lane, this)) {
      this.noteLate(ended.kind);
      return;
    }
    if (this.#isParkedBy(ended)) {
      void this.#flushText();
      return;
    }
    const { end, calls } = this.#finish(ended);
    // Before they are requested: the driver must find them when the state demands them.
    // @fault end-calls-begun-before-durable, end-calls-forgotten
    for (const call of calls) lane.works.push(call);
    if (this.parks) for (const call of calls) host.drive.stop(lane, call, { kind: "shutdown" });
    void this.#settle(end, calls);
  }

  /** A turn that a shutdown has cut off is parked, too: it has not done its work. */
  #isParkedBy(ended: Ended<unknown>): boolean {
    if (!this.parks) return false;
    if (this.isCutOff) return true; // @fault cut-off-turn-ends-its-run
    if (this.lane.works.some(({ isParked }) => isParked)) return true; // @fault parked-call-ends-its-run
    return ended.kind === "cancelled" && ended.reason.kind === "shutdown";
  }

  async #settle(end: TurnEnd, calls: readonly LiveCall[]): Promise<void> {
    const { lane, host } = this;
    lane.needsNoReplay = this.run.id;
    try {
      await host.commit.submit(lane, { type: "settle-turn", end });
    } catch {
      // Refused only if another worker has taken over the lane, which then records how the turn ended.
    }
    host.drive.forget(lane, this);
    // Calls that were not requested, because the run was being stopped, are dropped.
    const live = this.#now()?.live ?? [];
    for (const call of calls) {
      if (call.phase === "waiting" && !live.some(({ id }) => id === call.id)) host.drive.forget(lane, call);
    }
  }

  /** The run as it is decided now; undefined once it has ended. */
  #now(): Run | undefined {
    const { live } = this.lane.decided;
    return live?.id === this.run.id ? live : undefined;
  }

  /** Users' prompts for the run. First those taken in when this turn was requested, or by a turn that was cut off. */
  async takeSteers(): Promise<readonly Prompt[]> {
    const earlier = this.#earlierSteers;
    this.#earlierSteers = [];
    const taken = await this.host.commit.submit(this.lane, { type: "take", turnId: this.id });
    return [...earlier, ...taken.map((steer) => steer.prompt)];
  }

  compact(summary: string): Promise<void> {
    return this.host.commit.submit(this.lane, { type: "compact", turnId: this.id, summary });
  }

  /** A call of another run is reported as unknown. */
  async cancel(id: string, options?: CallCancelOptions): Promise<CancelReceipt> {
    const stop = checkCallStop(id, options);
    return runOf(stop.callId) === this.run.id ? this.host.commit.submit(this.lane, stop) : { kind: "unknown" };
  }

  async stop(note: string): Promise<void> {
    const reason = { kind: "policy", note } as const;
    // @fault own-stop-not-recorded
    await this.host.commit.submit(this.lane, { type: "cancel-run", runId: this.run.id, reason });
  }

  get processes(): TurnProcesses {
    return new TurnProcesses(this);
  }

  async transcript(): Promise<readonly Message[]> {
    const { lane, host, run, id } = this;
    lane.transcript ??= new LiveTranscript();
    const messages = await lane.transcript.read(host.store, lane, run);
    // The calling turn's own message is omitted, unless it has made calls: those have results already.
    const isOwn = (message: Message): boolean => message.role === "assistant" && message.turnId === id;
    const calls = messages.some(
      (message) => isOwn(message) && message.role === "assistant" && message.calls.length > 0,
    );
    return calls ? messages : messages.filter((message) => !isOwn(message));
  }

  /** The end of the turn, with its output and its calls. */
  #finish(ended: Ended<unknown>): Finished {
    switch (ended.kind) {
      case "completed":
        return this.#completed(ended.value);
      case "failed":
        return { end: this.#end(failure(ended.error)), calls: [] };
      case "cancelled":
        return { end: this.#end(stoppedLike(ended)), calls: [] };
    }
  }

  /** An end without a result: the output so far and the known cost are kept. */
  #end(outcome: Outcome): TurnEnd {
    this.#flushOutput();
    // @fault usage-lost-with-the-stop
    return { turnId: this.id, outcome, next: "end", text: this.#wholeText(), ...this.#metered() };
  }

  /** Records the output so far, for a turn that is parked rather than ended. */
  #flushText(): Promise<void> {
    this.#cancelExtend?.();
    return this.#extend();
  }

  meter(read: () => unknown): void {
    if (typeof read !== "function") throw invalid("meter() takes a function.");
    this.#meter = read;
  }

  emit(given: string, kind: Kind = "text"): void {
    if (typeof given !== "string") throw invalid("emit() takes a string.");
    if (kind !== "text" && kind !== "reasoning") throw invalid('emit() takes "text" or "reasoning" as its kind.');
    if (this.phase !== "live" && this.phase !== "stopping") return; // Abandoned: it has no effect any more.
    const whole = this.#pendingHalf[kind] + given;
    const cut = /[\ud800-\udbff]/.test(whole.slice(-1)) ? whole.length - 1 : whole.length;
    if (cut < whole.length || this.#pendingHalf !== NO_HALF) {
      this.#pendingHalf = { ...this.#pendingHalf, [kind]: whole.slice(cut) };
    }
    this.#append(whole.slice(0, cut).toWellFormed(), kind);
  }

  #append(text: string, kind: Kind): void {
    if (text === "") return;
    this.#delta(text, kind);
    if (kind === "reasoning") {
      this.#reasoningChars += text.length;
      return;
    }
    const room = TURN_CHARS_MAX - this.#text.length;
    this.#text += text.slice(0, room).toWellFormed();
    this.#dropped += Math.max(0, text.length - room);
    this.#cancelExtend ??= this.host.clock.after(EXTEND_EVERY_MS, () => void this.#extend());
  }

  #delta(text: string, kind: Kind): void {
    if (this.isGone) return;
    const { lane, host, id: turnId } = this;
    const from = kind === "text" ? this.#text.length + this.#dropped : this.#reasoningChars;
    const delta = { type: "delta", runId: this.run.id, turnId, text, from } as const;
    host.feeds.delta(lane.id, kind === "text" ? delta : { ...delta, kind }, lane.durable.head);
  }

  /** Settles behind the gate. */
  call(name: string, given: JsonInput, execute: Execute, options: CallOptions = {}): Promise<CallResult> {
    let request: CallRequest;
    try {
      request = checkCall({ ...options, name, input: given as Json, execute });
    } catch (error) {
      return this.gate.settle(() => Promise.reject(error));
    }
    // @fault finished-call-repeated
    if (this.run.recoveries > 0 && options.again !== "begin") {
      return this.gate.settle(async () => {
        return (await this.#recorded(name, request.input, options)) ?? this.#begin(name, request);
      });
    }
    return this.#begin(name, request);
  }

  #begin(name: string, request: CallRequest): Promise<CallResult> {
    const run = this.#now();
    const reason = this.scope.reason ?? (run?.phase === "stopping" ? run.reason : undefined);
    const callId = this.#nextCallId();
    // Nothing new begins once a stop was requested, whether or not it is recorded yet.
    if (reason !== undefined) {
      const unbegun = toResult({ callId, outcome: { kind: "cancelled", reason }, begun: false });
      return this.gate.settle(() => Promise.resolve(unbegun));
    }
    // It may have ended while the log was read, and a later turn must not get its calls.
    // @fault call-of-an-ended-turn
    if (this.phase === "ended") {
      const busy = new ControlError("busy", `${this.id} has ended and begins no new calls.`);
      return this.gate.settle(() => Promise.reject(busy));
    }
    const live = new LiveCall(this.host, this.lane, callId, name, request);
    const result = live.resultBehind(this.gate);
    // The text before the call is recorded first, so that the log has their order.
    void this.#flushText();
    this.#request(live, request);
    return result;
  }

  /** The recorded result of this call, if it was made before a crash. */
  async #recorded(name: string, input: Json, options: CallOptions): Promise<CallResult | undefined> {
    const { lane, host, run } = this;
    if (lane.needsNoReplay === run.id) return undefined;
    this.#replay ??= readReplay(host.store, lane.id, this.id, run.acceptedAt);
    return (await this.#replay).take(name, input, options);
  }

  #request(live: LiveCall, request: CallRequest): void {
    const { lane, host } = this;
    const refuse = (error: unknown): void => {
      host.drive.forget(lane, live);
      live.refuse(error);
    };
    lane.works.push(live);
    host.commit.submit(lane, { type: "call", ...askOf(live.id, request) }).then((answer) => {
      if (answer.kind === "refused") refuse(new ControlError(answer.code, answer.message));
    }, refuse);
  }

  /** Counted here rather than in the state: two calls of one tick must not get the same id. */
  #nextCallId(): CallId {
    this.#calls = Math.max(this.#calls, (this.#now() ?? this.run).calls) + 1;
    return makeCallId(this.run.id, this.#calls);
  }

  #completed(value: unknown): Finished {
    let result: Result;
    try {
      result = checkResult(value);
    } catch (error) {
      return { end: this.#end(failure(error)), calls: [] };
    }
    this.#flushOutput();
    const { requests, finish, parts, usage, next } = result;
    const model = result.model ?? this.#metered().model;
    const calls = requests.map(
      (request) => new LiveCall(this.host, this.lane, this.#nextCallId(), request.name, request),
    );
    const end: TurnEnd = {
      turnId: this.id,
      outcome: completed(next === "end" ? finish : undefined),
      next,
      text: result.text === undefined ? this.#wholeText() : bounded(result.text),
      ...(usage === undefined ? {} : { usage }),
      ...(model === undefined ? {} : { model }),
      ...(finish === undefined ? {} : { finish }),
      ...(parts === undefined ? {} : { parts }),
      ...(calls.length === 0 ? {} : { calls: calls.map((live, index) => askOf(live.id, requests[index])) }),
      ...(this.heard === undefined ? {} : { heard: this.heard }),
    };
    return { end, calls };
  }

  async #extend(): Promise<void> {
    this.#cancelExtend = undefined;
    // From the decided state rather than the answers: a piece whose answer was lost may be in the log.
    const from = this.#now()?.textChars ?? this.#text.length;
    if (this.#text.length <= from) return;
    const { parts: _, ...known } = this.#metered();
    const piece = { turnId: this.id, text: this.#text.slice(from), ...known };
    try {
      await this.host.commit.submit(this.lane, { type: "extend", ...piece });
    } catch {
      // The store fails, which is reported in a separate notice. Nothing is lost: the text is part of the next piece.
    }
  }

  #metered(): Metered {
    try {
      return checkMeter(this.#meter());
    } catch {
      // The agent's meter failed, which must not change how its turn ends.
      return {};
    }
  }

  /** Flushes the output: no second half of a character follows. */
  #flushOutput(): void {
    for (const kind of ["text", "reasoning"] as const) {
      this.#append(this.#pendingHalf[kind].toWellFormed(), kind);
    }
    this.#pendingHalf = NO_HALF;
    this.#cancelExtend?.();
  }

  #wholeText(): string {
    return withDropped(this.#text, this.#dropped);
  }
}

/** Cuts a returned text to the limit of emitted text, with the same note. */
const bounded = (text: string): string =>
  withDropped(text.slice(0, TURN_CHARS_MAX).toWellFormed(), Math.max(0, text.length - TURN_CHARS_MAX));

const withDropped = (text: string, dropped: number): string =>
  dropped === 0 ? text : `${text}\n[${dropped} more characters were not kept]`;

/** If the model did not end its answer by itself, the outcome has its finish. */
function completed(finish: Result["finish"]): Outcome {
  if (finish === undefined || finish === "stop" || finish === "calls") return { kind: "completed" };
  return { kind: "completed", finish };
}

const nothing = (): undefined => undefined;
