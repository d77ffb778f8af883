// One live tool call: it waits for its hook, approval and slot, runs, and its end is recorded before any code receives
// it.
//
// Invariants
// 1. The stages have this order: request, hook, approval, slot, tool, end. One that is not needed is skipped.
// 2. A stop ends each wait before the tool at once, and nothing of the tool begins in its tick or later.
// 3. Its slot is released when its code has returned and its processes have ended, or when it is abandoned.
// 4. It settles once. What its code returns after it was abandoned is dropped, and reported as late.

import { messageOf, toControlError } from "../../core/errors.ts";
import { checkCallJson, invalid } from "../../core/input.ts";
import { CHANGES_MAX, NOTE_CHARS_MAX } from "../../core/limits.ts";
import { type CancelReason, type Outcome, who } from "../../core/model/cancel.ts";
import type { CallId } from "../../core/model/ids.ts";
import type { Json, JsonInput } from "../../core/model/prompt.ts";
import type { QuestionOutcome, Subject } from "../../core/model/question.ts";
import { isCallStopRefusable } from "../../core/policy/covers.ts";
import { isUndecided } from "../../core/policy/decide-question.ts";
import type { CallEnd } from "../../core/policy/decide-run.ts";
import type { Approval, ApprovalOption, CallRequest, CallResult } from "../../ports/agent.ts";
import type { HookedCall, Verdict } from "../../ports/hooks.ts";
import type { ProcessResult } from "../../ports/spawner.ts";
import type { SessionState } from "../log/session-state.ts";
import { CallProcesses } from "../process/work-processes.ts";
import type { YieldGate } from "../yield-gate.ts";
import { CallFacade } from "./call-facade.ts";
import { failure, stoppedLike, toResult } from "./call-result.ts";
import { byRule } from "./call-stop.ts";
import { recordableResult } from "./recordable-result.ts";
import { RunWork, type WorkHost } from "./run-work.ts";
import type { Ended } from "./scope.ts";
import { checkApproval } from "./validate-question.ts";

type Approvable = Pick<CallRequest, "name" | "input">;

/** A request; or, for a call that an earlier worker has left, a function that looks it up. */
export type Request = CallRequest | (() => Promise<CallRequest>);

export class LiveCall extends RunWork {
  declare readonly id: CallId;
  /** The input to execute: the requested one, unless a hook has replaced it. */
  input: Json;
  #request: Request;
  /** The host's hook has approved everything it does. */
  #isApproved = false;
  #partial: Json | undefined = undefined;
  #changes: string[] | undefined = undefined;
  #releaseSlot: () => void = ignore;
  #unfollowSignal: () => void = ignore;
  /** The promise that the turn was given, and the gate of the turn, behind which it settles. */
  #result: Promise<CallResult> | undefined = undefined;
  #turnGate: Pick<YieldGate, "pass"> | undefined = undefined;
  #answer: (result: CallResult) => void = ignore;
  #reject: (error: unknown) => void = ignore;

  constructor(host: WorkHost, lane: SessionState, id: CallId, name: string, request: Request, mayHaveBegun = false) {
    super(host, lane, id, name);
    this.begun = mayHaveBegun ? undefined : false;
    this.#request = request;
    if (typeof request === "function") {
      this.input = null;
      return;
    }
    this.input = request.input;
    this.since = host.clock.now();
  }

  /** A call that is not interruptible is not signalled once it has begun: it may finish within the grace period. */
  get signal(): AbortSignal {
    return this.interruptible ? this.scope.signal : new AbortController().signal;
  }

  get waitSignal(): AbortSignal {
    return this.signal;
  }

  get interruptible(): boolean {
    const request = this.#request; // @fault other-bytes-shown:request
    return typeof request === "function" || request.interruptible !== false;
  }

  /** Settles once the call's end is durable, behind the gate of the turn that made the call. Called once. */
  resultBehind(gate: Pick<YieldGate, "pass">): Promise<CallResult> {
    this.#turnGate = gate;
    this.#result = new Promise((resolve, reject) => {
      this.#answer = resolve;
      this.#reject = reject;
    });
    return this.#result;
  }

  /** Its request was not recorded: the run takes no new calls, or the store failed. */
  refuse(error: unknown): void {
    // A rejection that the agent does not handle does not end the program.
    this.#result?.catch(ignore);
    this.#turnGate?.pass(() => this.#reject(toControlError(error)));
  }

  begin(): void {
    // @fault end-call-carried-out-twice
    void this.scope.execute(() => this.#execute()).then((ended) => this.#ended(ended));
  }

  abandon(reason: CancelReason, how: "unbegun" | "abandoned"): void {
    const outcome: Outcome =
      how === "unbegun" ? { kind: "cancelled", reason } : { kind: "cancelled", reason, abandoned: [this.name] };
    // The next call must not wait for the slot of a call that may never end.
    this.#releaseSlot(); // @fault place-kept-by-the-abandoned
    this.#settle(this.#record(this.#end(outcome, this.#partial)));
  }

  keepPartial(result: JsonInput): void {
    this.#partial = recordableResult(result, `The partial result of ${this.name}`);
  }

  noteChange(what: string): void {
    if (typeof what !== "string" || what === "") throw invalid("changed() takes a short text: what was changed.");
    this.#changes ??= [];
    if (this.#changes.length < CHANGES_MAX) this.#changes.push(what.slice(0, NOTE_CHARS_MAX).toWellFormed());
  }

  progress(data: Json): void {
    if (this.isGone) return;
    const { lane, host, id: callId, runId } = this;
    host.feeds.delta(lane.id, { type: "progress", runId, callId, data }, lane.durable.head);
  }

  get processes(): CallProcesses {
    return new CallProcesses(this);
  }

  /** Keeps the output of a process when the call is stopped, unless the tool has stored a partial result. */
  keep(kept: Omit<ProcessResult, "outcome"> & { readonly outcome?: unknown }): void {
    const { outcome: _, ...result } = kept;
    this.#partial ??= recordableResult({ ...result }, `What ${this.name} left`);
  }

  /** Hook, approval, slot, then the tool itself. A stop takes effect at each of them. */
  async #execute(): Promise<unknown> {
    const isResumed = typeof this.#request === "function";
    const request = await this.#requested();
    if (this.host.hooks.beforeCalls || request.approval !== undefined) await this.#admit(request);
    if (request.slots !== undefined) await this.#takeSlot(request.slots);
    this.waits = undefined;
    let limit: (() => void) | undefined;
    try {
      if (isResumed) await this.#admitResumed();
      // @fault begins-in-the-tick-of-its-stop:wait, begins-behind-an-interrupt
      while (this.#isInDoubt()) await this.scope.until(this.#known());
      // The last check, in the same tick: a stop may have come after the last wait.
      // @fault begins-in-the-tick-of-its-stop:check
      if (this.scope.reason !== undefined) throw new Error("It was stopped before it began.");
      limit = this.#startLimit(request.timeoutMs);
      this.begun = true; // @fault begun-not-noted
      this.host.budget.watch?.began(this);
      return await request.execute(new CallFacade(this));
    } finally {
      this.host.budget.watch?.ended(this);
      limit?.(); // @fault limit-left-behind
      this.hasReturned = true;
      const { processes } = this.host.handles;
      // @fault leftovers-of-a-call
      if (processes.hasPending(this.lane, this.id)) await processes.endOf(this.lane, this.id);
      this.#releaseSlot(); // @fault place-kept-by-the-finished
    }
  }

  async #requested(): Promise<CallRequest> {
    if (typeof this.#request === "function") {
      // A call of an earlier worker may have an open approval, and has not begun before its request is looked up.
      this.waits = "approval";
      this.#request = await this.scope.until(this.#request());
      this.input = this.#request.input;
    }
    this.#followSignal(this.#request.signal);
    return this.#request;
  }

  /** Until it has ended, the agent's signal stops it like a cancel. */
  #followSignal(signal: AbortSignal | undefined): void {
    if (signal === undefined) return;
    const { host, lane, id: callId } = this;
    const stop = (): void => {
      const reason = byRule(messageOf(signal.reason));
      host.commit.submit(lane, { type: "cancel-call", callId, reason, remind: true }).catch(ignore);
    };
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    this.#unfollowSignal = () => signal.removeEventListener("abort", stop);
  }

  async #admit({ approval = false }: CallRequest): Promise<void> {
    const verdict = await this.#runHook();
    if (verdict?.kind === "deny") throw denied(`Not carried out: a rule of the host forbids it. ${verdict.note}`);
    if (verdict?.input !== undefined) this.input = verdict.input;
    this.#isApproved = verdict?.approved === true;
    if (this.#isApproved) return;
    const wanted = typeof approval === "function" ? await this.#evaluateApproval(approval) : approval;
    if (wanted !== false) await this.#requestApproval(wanted === true ? {} : wanted);
  }

  /** While its approval is open in the log, it has not begun: the next worker would begin it again. */
  async #admitResumed(): Promise<void> {
    if (!(await this.scope.until(this.#isAdmitted()))) {
      throw denied("Not carried out: it was not approved.");
    }
  }

  async #isAdmitted(): Promise<boolean> {
    const { lane, host, id: callId } = this;
    // The durable state counts as well: an answer in flight may never be recorded.
    if (!isUndecided(lane.decided, callId) && !isUndecided(lane.durable, callId)) return true;
    return (await host.commit.submit(lane, { type: "admit-call", callId })) === "admitted";
  }

  /** A stop that can still be refused stops nothing before it is durable; but nothing begins meanwhile either. */
  #isInDoubt(): boolean {
    const { decided, durable, health } = this.lane;
    return health.kind === "unknown" || isCallStopRefusable(decided, durable, this.id);
  }

  /** Rejects if it will never be known here. */
  async #known(): Promise<void> {
    await this.host.commit.drained(this.lane);
    if (this.isGone) throw new Error(`Session ${this.sessionId} is not driven from here any more.`);
  }

  /** If the callback throws, an approval is required. */
  async #evaluateApproval(
    approval: Extract<CallRequest["approval"], (...given: never) => unknown>,
  ): Promise<ApprovalOption> {
    const { scope } = this;
    try {
      return checkApproval(await scope.until(Promise.resolve(approval(this.input, { mode: this.mode }))));
    } catch (error) {
      if (scope.reason !== undefined) throw error;
      const note = `Whether this needs an approval could not be told: ${messageOf(error)}`;
      return { note: note.slice(0, NOTE_CHARS_MAX).toWellFormed() };
    }
  }

  async #requestApproval(approval: Approval): Promise<void> {
    const subject: Approvable = {
      name: this.name,
      input: this.input, // @fault other-bytes-shown:input
    };
    checkApproved(await this.#inquire(subject, approval));
  }

  async approve(subject: Approvable, given: Approval = {}): Promise<QuestionOutcome> {
    const approval = checkApproval(given);
    if (typeof subject?.name !== "string" || subject.name === "") throw invalid("approve() takes a name and an input.");
    if (this.#isApproved || typeof approval === "boolean") return { kind: "allowed" };
    const input = checkCallJson(subject.input ?? null, "What is to be approved");
    const ending = await this.#inquire({ name: subject.name.toWellFormed(), input }, approval);
    this.waits = undefined;
    return ending;
  }

  #inquire({ name, input }: Approvable, { scope, note, deadlineMs }: Approval): Promise<QuestionOutcome> {
    this.waits = "approval";
    const about: Subject = {
      kind: "approval",
      name,
      input,
      digest: this.host.digest(JSON.stringify([name, input])), // @fault other-bytes-shown:digest
      scope: scope ?? name,
      ...(note === undefined ? {} : { note }),
    };
    return this.inquire(about, deadlineMs);
  }

  async #runHook(): Promise<Verdict | undefined> {
    if (!this.host.hooks.beforeCalls) return undefined;
    this.waits = "hook";
    return this.scope.until(this.host.hooks.before(this.hooked())); // @fault hook-holds-up-the-stop
  }

  override hooked(): HookedCall {
    const { id: callId, name, input, runId, sessionId, scope } = this;
    return { callId, name, input, runId, sessionId, signal: scope.signal };
  }

  async #takeSlot(slots: NonNullable<CallRequest["slots"]>): Promise<void> {
    this.waits = "slot";
    let dispose = ignore;
    const coming = new Promise<void>((resolve) => {
      dispose = slots.take((release) => {
        this.#releaseSlot = release;
        resolve();
      });
    });
    try {
      await this.scope.until(coming); // @fault place-holds-up-the-stop
    } catch (error) {
      dispose(); // @fault place-kept-by-the-cancelled:queue
      this.#releaseSlot(); // @fault place-kept-by-the-cancelled:place
      throw error;
    }
  }

  #startLimit(limitMs: number | undefined): (() => void) | undefined {
    if (limitMs === undefined) return undefined;
    // @fault call-limit-halved
    return this.host.clock.after(limitMs, () => this.#limitReached(limitMs));
  }

  #limitReached(limitMs: number): void {
    const reason = { kind: "timeout", limitMs } as const;
    // Refused only by a failing store, which keeps the cancel, or if another worker drives the lane.
    this.host.commit.submit(this.lane, { type: "cancel-call", callId: this.id, reason }).catch(ignore);
  }

  #ended(ended: Ended<unknown>): void {
    const { outcome, result } = this.#outcomeOf(ended);
    const end = this.#end(outcome, result);
    const counts = this.host.drive.ended(this.lane, this);
    if (!counts) this.noteLate(outcome.kind);
    // Too late to count: the turn has received the abandoned result, and gets nothing else.
    if (counts) this.#settle(this.#record(end)); // @fault late-result-told
  }

  #settle(recorded: Promise<CallEnd>): void {
    this.#unfollowSignal();
    recorded.then(
      (end) => this.#turnGate?.pass(() => this.#answer(toResult(end))),
      (error: unknown) => this.refuse(error),
    );
  }

  /** Resolves with its end as it is recorded, or when it is parked instead. */
  async #record(end: CallEnd): Promise<CallEnd> {
    const { lane, host } = this;
    // Abandoned is cancelled, too.
    if (this.parks && end.outcome.kind === "cancelled") {
      host.drive.park(lane, this);
      return end;
    }
    try {
      const recorded = await host.commit.submit(lane, { type: "settle-call", end });
      return recorded === "late" ? end : recorded;
    } finally {
      host.drive.forget(lane, this);
    }
  }

  #outcomeOf(ended: Ended<unknown>): { readonly outcome: Outcome; readonly result: Json | undefined } {
    if (ended.kind === "cancelled") {
      const { reason } = ended;
      // A wait may fail because of the stop, but that is not an error of the tool.
      const outcome = this.begun === false ? { kind: "cancelled" as const, reason } : stoppedLike(ended);
      return { outcome, result: this.#partial }; // @fault partial-lost-with-the-stop
    }
    if (ended.kind === "failed") return { outcome: failure(ended.error), result: this.#partial };
    const { value } = ended;
    const result = value === undefined ? undefined : recordableResult(value, `The result of ${this.name}`);
    return { outcome: { kind: "completed" }, result };
  }

  #end(outcome: Outcome, result: Json | undefined): CallEnd {
    const isUnbegun = this.begun === false && outcome.kind === "cancelled"; // @fault unbegun-not-told
    return {
      callId: this.id,
      outcome,
      ...(isUnbegun ? { begun: false } : {}),
      ...(result === undefined ? {} : { result }),
      ...(this.#changes === undefined ? {} : { changes: [...this.#changes] }), // @fault changes-not-told
      ...(this.heard === undefined ? {} : { heard: this.heard }),
    };
  }
}

function checkApproved(ending: QuestionOutcome): void {
  switch (ending.kind) {
    case "allowed":
      return;
    case "denied":
      throw denied(
        `Not carried out: denied by ${ending.by ?? "the user"}${ending.note === undefined ? "." : `: ${ending.note}`}`,
      );
    case "expired":
      throw denied(`Not carried out: not approved within ${ending.limitMs} ms.`); // @fault expired-means-yes
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

const ignore = (): void => {};
