// One tool call that is going on: it waits for what it has to wait for, runs, and whatever becomes of it is recorded
// before anybody hears of it.
import type { Waits } from "../control.ts";
import { type CancelReason, type Outcome, who } from "../core/cancel.ts";
import { messageOf, toControlError } from "../core/control-error.ts";
import type { CallEnd } from "../core/decide-run.ts";
import { type CallId, type ProcessId, type RunId, runOf } from "../core/ids.ts";
import { CHANGES_MAX, NOTE_CHARS_MAX } from "../core/limits.ts";
import type { Json } from "../core/prompt.ts";
import type { About, Ending } from "../core/question.ts";
import type { Approval, CallRequest, CallResult, Clock, HookedCall, Turn, Verdict, Wanted } from "../ports.ts";
import type { CallProcesses, ProcessResult } from "../spawner.ts";
import { CallFacade } from "./call-facade.ts";
import { LiveWork, type WorkOwner } from "./live-work.ts";
import type { Ended, Scope } from "./scope.ts";
import { checkApproval, checkCallJson, invalid } from "./validate.ts";

/** What the host has to say to a call before it begins. */
interface BeforeCalls {
  readonly beforeCalls: boolean;
  before(call: HookedCall): Promise<Verdict | undefined>;
}

/** How a call's end reaches the log, and what it may ask of the engine on the way. */
export interface CallDesk {
  readonly clock: Clock;
  readonly hooks: BeforeCalls;
  readonly sessionId: Turn["sessionId"];
  readonly cwd: Turn["cwd"];
  readonly mode: Turn["mode"];
  /** It ended by itself. Undefined: it comes too late to count, and nothing is recorded. */
  ended(work: LiveWork, end: CallEnd): Promise<unknown> | undefined;
  gaveUp(work: LiveWork, end: CallEnd): Promise<unknown>;
  limitReached(callId: CallId, limitMs: number): void;
  inquire(scope: Scope, owner: CallId, about: About, deadlineMs: number | undefined): Promise<Ending>;
  progress(callId: CallId, data: Json): void;
  digest(text: string): string;
  /** Whether a stop of it may be in the log that nobody here knows of yet; and when that is known. */
  unsure(callId: CallId): boolean;
  known(): Promise<void>;
  /** What it may do with processes, and what becomes of those it has left going on. */
  processesOf(call: CallHolder): CallProcesses;
  ownsProcesses(callId: CallId): boolean;
  endProcesses(callId: CallId): Promise<void>;
  abandonProcesses(callId: CallId): void;
}

interface CallHolder {
  readonly callId: CallId;
  readonly scope: Scope;
  heard(id: ProcessId): void;
  isOver(): boolean;
  keep(result: ProcessResult): void;
}

/** A request, or, for a call that an earlier life asked for, the means to find out what it was. */
export type Request = CallRequest | (() => Promise<CallRequest>);

export class LiveCall implements WorkOwner {
  readonly callId: CallId;
  readonly name: string;
  readonly work: LiveWork;
  readonly desk: CallDesk;
  /** What is carried out: what was asked for, unless a hook has put something else in its place. */
  input: Json;
  waits: Waits | undefined = undefined;
  #request: Request;
  #partial: Json | undefined = undefined;
  #changes: string[] | undefined = undefined;
  #heard: ProcessId[] | undefined = undefined;
  #returned = false;
  #giveBack: () => void = ignore;
  #answer: (result: CallResult) => void = ignore;
  #fail: (error: unknown) => void = ignore;

  constructor(callId: CallId, name: string, request: Request, desk: CallDesk) {
    this.callId = callId;
    this.name = name;
    this.desk = desk;
    this.#request = request;
    this.input = typeof request === "function" ? null : request.input;
    this.work = new LiveWork(callId, name, this);
  }

  get runId(): RunId {
    return runOf(this.callId);
  }

  /** Once begun, a call that cannot stop half-way is not told to. */
  get signal(): AbortSignal {
    const request = this.#request; // @fault other-bytes-shown:request
    const deaf = typeof request !== "function" && request.interruptible === false;
    return deaf ? new AbortController().signal : this.work.scope.signal;
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
    // @fault end-call-carried-out-twice
    void this.work.scope.carryOut(() => this.#carryOut()).then((ended) => this.#ended(ended));
  }

  giveUp(reason: CancelReason, how: "unbegun" | "abandoned"): void {
    const outcome: Outcome =
      how === "unbegun" ? { kind: "cancelled", reason } : { kind: "cancelled", reason, abandoned: [this.name] };
    // Whoever waits for its place must not wait for a call that may never end.
    this.#giveBack(); // @fault place-kept-by-the-abandoned
    this.desk.abandonProcesses(this.callId);
    this.#settle(this.desk.gaveUp(this.work, this.#end(outcome, this.#partial)), outcome, this.#partial);
  }

  keepPartial(result: Json): void {
    this.#partial = checkCallJson(result, `The partial result of ${this.name}`);
  }

  noteChange(what: string): void {
    if (typeof what !== "string" || what === "") throw invalid("changed() takes a short text: what was changed.");
    this.#changes ??= [];
    if (this.#changes.length < CHANGES_MAX) this.#changes.push(what.slice(0, NOTE_CHARS_MAX).toWellFormed());
  }

  get processes(): CallProcesses {
    return this.desk.processesOf({
      callId: this.callId,
      scope: this.work.scope,
      heard: (id) => this.#hears(id),
      isOver: () => this.#returned,
      keep: (result) => this.#keep(result),
    });
  }

  /** What a process had said when the call was stopped, unless the tool has put something aside itself. */
  #keep({ outcome: _, ...result }: ProcessResult): void {
    this.#partial ??= checkCallJson({ ...result }, `What ${this.name} left`);
  }

  #hears(id: ProcessId): void {
    // What it hears after it has returned, it tells nobody.
    if (this.#returned) return; // @fault heard-after-the-return
    this.#heard ??= [];
    if (!this.#heard.includes(id)) this.#heard.push(id);
  }

  /** Hook, approval, slot, and then the tool itself. A stop is heard at each of them. */
  async #carryOut(): Promise<unknown> {
    const request = await this.#requested();
    if (this.desk.hooks.beforeCalls || request.approval !== undefined) await this.#admit(request);
    if (request.slots !== undefined) await this.#takeSlot(request.slots);
    this.waits = undefined;
    let limit: (() => void) | undefined;
    try {
      // @fault begins-in-the-tick-of-its-stop:wait, begins-behind-an-interrupt
      while (this.desk.unsure(this.callId)) await this.work.scope.until(this.desk.known());
      // The last look, in the same tick: a stop may have come after the last thing it waited for.
      // @fault begins-in-the-tick-of-its-stop:check
      if (this.work.scope.reason !== undefined) throw new Error("It was stopped before it began.");
      limit = this.#startLimit(request.timeoutMs);
      return await request.execute(new CallFacade(this));
    } finally {
      limit?.(); // @fault limit-left-behind
      this.#returned = true;
      if (this.desk.ownsProcesses(this.callId)) await this.desk.endProcesses(this.callId); // @fault leftovers-of-a-call
      this.#giveBack(); // @fault place-kept-by-the-finished
    }
  }

  async #requested(): Promise<CallRequest> {
    if (typeof this.#request === "function") {
      // One that an earlier life has asked for may have an open approval, and does nothing before it is known again.
      this.waits = "approval";
      this.#request = await this.work.scope.until(this.#request());
      this.input = this.#request.input;
    }
    return this.#request;
  }

  async #admit({ approval = false }: CallRequest): Promise<void> {
    const verdict = await this.#hear();
    if (verdict?.kind === "deny") throw denied(`Not carried out: a rule of the host forbids it. ${verdict.note}`);
    if (verdict?.input !== undefined) this.input = verdict.input;
    if (verdict?.approved === true) return;
    const wanted = typeof approval === "function" ? await this.#judge(approval) : approval;
    if (wanted !== false) await this.#ask(wanted === true ? {} : wanted);
  }

  /** Whoever cannot say whether people must be asked has not said that they need not. */
  async #judge(approval: Extract<CallRequest["approval"], (...given: never) => unknown>): Promise<Wanted> {
    const { scope } = this.work;
    try {
      return checkApproval(await scope.until(Promise.resolve(approval(this.input, { mode: this.desk.mode }))));
    } catch (error) {
      if (scope.reason !== undefined) throw error;
      const note = `Whether this needs an approval could not be told: ${messageOf(error)}`;
      return { note: note.slice(0, NOTE_CHARS_MAX).toWellFormed() };
    }
  }

  async #ask({ scope, note, deadlineMs }: Approval): Promise<void> {
    this.waits = "approval";
    const about: About = {
      kind: "approval",
      name: this.name,
      input: this.input, // @fault other-bytes-shown:input
      digest: this.desk.digest(JSON.stringify([this.name, this.input])), // @fault other-bytes-shown:digest
      scope: scope ?? this.name,
      ...(note === undefined ? {} : { note }),
    };
    checkApproved(await this.desk.inquire(this.work.scope, this.callId, about, deadlineMs));
  }

  async #hear(): Promise<Verdict | undefined> {
    if (!this.desk.hooks.beforeCalls) return undefined;
    this.waits = "hook";
    return this.work.scope.until(this.desk.hooks.before(this.hooked())); // @fault hook-holds-up-the-stop
  }

  /** What a hook is told of it. */
  hooked(): HookedCall {
    const { callId, name, input, runId, desk, work } = this;
    return { callId, name, input, runId, sessionId: desk.sessionId, signal: work.scope.signal };
  }

  async #takeSlot(slots: NonNullable<CallRequest["slots"]>): Promise<void> {
    this.waits = "slot";
    let takeBack = ignore;
    const coming = new Promise<void>((resolve) => {
      takeBack = slots.take((giveBack) => {
        this.#giveBack = giveBack;
        resolve();
      });
    });
    try {
      await this.work.scope.until(coming); // @fault place-holds-up-the-stop
    } catch (error) {
      takeBack(); // @fault place-kept-by-the-cancelled:queue
      this.#giveBack(); // @fault place-kept-by-the-cancelled:place
      throw error;
    }
  }

  #startLimit(limitMs: number | undefined): (() => void) | undefined {
    if (limitMs === undefined) return undefined;
    // @fault call-limit-halved
    return this.desk.clock.after(limitMs, () => this.desk.limitReached(this.callId, limitMs));
  }

  #ended(ended: Ended<unknown>): void {
    const { outcome, result } = this.#outcomeOf(ended);
    const recorded = this.desk.ended(this.work, this.#end(outcome, result));
    // Too late to count: the turn is told what giving it up has recorded, and nothing else.
    if (recorded !== undefined) this.#settle(recorded, outcome, result); // @fault late-result-told
  }

  #settle(recorded: Promise<unknown>, outcome: Outcome, result: Json | undefined): void {
    recorded.then(
      () => this.#answer(toResult(this.callId, outcome, result)),
      (error: unknown) => this.#fail(toControlError(error)),
    );
  }

  #outcomeOf(ended: Ended<unknown>): { readonly outcome: Outcome; readonly result: Json | undefined } {
    if (ended.kind === "cancelled") {
      // @fault partial-lost-with-the-stop
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
    return {
      callId: this.callId,
      outcome,
      ...(result === undefined ? {} : { result }),
      ...(this.#changes === undefined ? {} : { changes: [...this.#changes] }), // @fault changes-not-told
      ...(this.#heard === undefined ? {} : { heard: this.#heard }),
    };
  }
}

function checkApproved(ending: Ending): void {
  switch (ending.kind) {
    case "allowed":
      return;
    case "denied":
      throw denied(
        `Not carried out: denied by ${ending.by ?? "the user"}${ending.note === undefined ? "." : `: ${ending.note}`}`,
      );
    case "expired":
      throw denied(`Not carried out: nobody approved it within ${ending.limitMs} ms.`); // @fault expired-means-yes
    case "withdrawn":
      throw denied(`Not carried out: the approval was taken back by ${who(ending.reason)}.`);
    case "answered":
      throw denied("Not carried out: the approval was answered with something else than yes.");
  }
}

class Denied extends Error {
  override readonly name = "Denied";
  readonly code = "denied";
}

const denied = (message: string): Denied => new Denied(message);

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

/** What a person or a model can use: the message, not the stack; and the code, if it has one that is a word. */
export function failure(error: unknown): Outcome {
  return { kind: "failed", code: codeOf(error), message: messageOf(error).slice(0, NOTE_CHARS_MAX).toWellFormed() };
}

function codeOf(error: unknown): string {
  try {
    const code: unknown = error instanceof Error && "code" in error ? error.code : undefined;
    return typeof code === "string" && /^[a-z][a-z_]{0,63}$/.test(code) ? code : "error";
  } catch {
    // Something that cannot be looked at.
    return "error";
  }
}

const ignore = (): void => {};
