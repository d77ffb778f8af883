// One prompt of an external agent, as a turn of Belay: its text, calls, permission requests, and end.
//
// Invariants
// 1. When the turn is stopped, the agent is notified in the same tick, and every permission request is answered at
//    once.
// 2. A stop that the agent does not follow is repeated, and then its process is ended; all within the turn's grace
//    period.
// 3. A cancelled turn ends when the processes that the agent started in it are gone. If they cannot be identified, they
//    are ended with the agent's own process.
// 4. The agent's updates are passed on in order, in the log and to clients alike: text waits until the call before it
//    is recorded.
// 5. When `run` has resolved or rejected, no call of the prompt is running.
import type { ContentBlock, RequestPermissionResponse } from "@agentclientprotocol/sdk";
import type { Turn } from "../../../ports/agent.ts";
import { AgentError } from "./agent-errors.ts";
import { type AgentProcess, agentErrorText, type Listener } from "./agent-process.ts";
import { CANCEL_CALL } from "./capabilities.ts";
import { isObject } from "./kept-json.ts";
import { CALLS_MAX, END_SHARE, ORDER_WAIT_MS, REPEAT_SHARE } from "./limits.ts";
import { MirroredCall, type MirroredCallParts } from "./mirrored-call.ts";
import { readOptions, requestApproval } from "./permission.ts";
import { RunProcesses } from "./run-processes.ts";
import { type CallChange, readCallChange, type Update } from "./update.ts";

export class ExternalTurn implements Listener {
  readonly sessionId: string;
  /** Characters of its text and reasoning. */
  outputChars = 0;
  readonly #turn: Turn;
  readonly #agentProcess: AgentProcess;
  readonly #processes: RunProcesses;
  readonly #mirroredCalls = new Map<string, MirroredCall>();
  readonly #updates: Update[] = [];
  #passingOn: Promise<void> = Promise.resolve();
  #isPassingOn = false;
  readonly #stopping = Promise.withResolvers<void>();
  readonly #again = new AbortController();
  #stopBy = 0;
  #dispose: (() => void)[] = [];

  constructor(turn: Turn, agentProcess: AgentProcess, sessionId: string) {
    this.#turn = turn;
    this.#agentProcess = agentProcess;
    this.sessionId = sessionId;
    this.#processes = new RunProcesses(turn, agentProcess);
  }

  /** Sends the prompt. Resolves with the agent's stop reason. */
  async run(prompt: readonly ContentBlock[]): Promise<string> {
    const { signal } = this.#turn;
    const stop = (): void => this.#stop();
    await this.#processes.begin();
    signal.throwIfAborted();
    this.#agentProcess.listener = this;
    try {
      const { sessionId } = this;
      const answered = this.#agentProcess.request<unknown>("session/prompt", { sessionId, prompt }, this.#again.signal);
      signal.addEventListener("abort", stop, { once: true });
      const answer = await answered;
      const stopReason = isObject(answer) ? answer.stopReason : undefined;
      if (typeof stopReason !== "string")
        throw new AgentError("agent_failed", `${this.#agentProcess.name} ${NO_ANSWER}`);
      await this.#endCommands();
      await this.#settleCalls(`${this.#agentProcess.name} ended its turn and did not report the outcome of this call.`);
      return stopReason;
    } catch (error) {
      throw await this.#failed(error);
    } finally {
      signal.removeEventListener("abort", stop);
      for (const dispose of this.#dispose) dispose();
      this.#agentProcess.listener = undefined;
    }
  }

  onUpdate(update: Update): void {
    this.#updates.push(update);
    if (!this.#isPassingOn) this.#passingOn = this.#passOn();
  }

  /** Passes updates on; synchronous up to the first call that must be recorded before the next update. */
  async #passOn(): Promise<void> {
    this.#isPassingOn = true;
    for (let next = this.#updates.shift(); next !== undefined; next = this.#updates.shift()) {
      const recorded = this.#pass(next);
      if (recorded !== undefined) await this.#inTime(recorded);
    }
    this.#isPassingOn = false;
  }

  /** Handles an update. Returns a promise if something must be durable before the next one. */
  #pass(update: Update): Promise<unknown> | undefined {
    switch (update.kind) {
      case "call": {
        const before = this.#beginHeld(update.change.id);
        if (before === undefined) return this.#passCall(update.change);
        return before.then(() => this.#passCall(update.change));
      }
      case "replayed":
        return undefined;
      case "other":
        this.#agentProcess.onUnrecorded(update.raw);
        return undefined;
      default: {
        const before = this.#beginHeld();
        if (before === undefined) this.#emit(update);
        return before?.then(() => this.#emit(update));
      }
    }
  }

  #emit({ kind, text }: Extract<Update, { kind: "text" | "thought" }>): void {
    this.outputChars += text.length;
    if (kind === "text") this.#turn.emit(text);
    else this.#turn.emit(text, "reasoning");
  }

  #passCall(change: CallChange): Promise<unknown> | undefined {
    const mirroredCall = this.#mirroredCall(change.id);
    if (mirroredCall === undefined) return undefined;
    const before = mirroredCall.phase;
    mirroredCall.update(change);
    return mirroredCall.phase === before ? undefined : mirroredCall.recorded;
  }

  /** Records calls that still wait for their input, because they come before what was sent after them. */
  #beginHeld(except?: string): Promise<unknown> | undefined {
    const held = [...this.#mirroredCalls].flatMap(([id, one]) => (one.phase === "held" && id !== except ? [one] : []));
    if (held.length === 0) return undefined;
    for (const one of held) one.begin();
    return this.#inTime(Promise.all(held.map((one) => one.recorded)));
  }

  /** Waits with a limit: a hook of the host may take longer, and text must not wait for it. */
  async #inTime(recorded: Promise<unknown>): Promise<void> {
    const limit = Promise.withResolvers<void>();
    const cancelLimit = this.#turn.clock.after(ORDER_WAIT_MS, () => limit.resolve());
    await Promise.race([recorded, limit.promise]);
    cancelLimit();
  }

  async permission(params: unknown, taken: AbortSignal): Promise<RequestPermissionResponse> {
    await this.#passingOn;
    const change = readCallChange(isObject(params) ? params.toolCall : undefined);
    const mirroredCall = change === undefined ? undefined : this.#mirroredCall(change.id);
    if (mirroredCall === undefined || change === undefined || this.#turn.signal.aborted)
      return { outcome: { outcome: "cancelled" } };
    // A permission request comes before the call begins, whatever status it has.
    mirroredCall.update({ ...change, status: undefined });
    const back = new Promise<void>((resolve) => taken.addEventListener("abort", () => resolve(), { once: true }));
    return requestApproval(
      mirroredCall,
      readOptions(params),
      Promise.race([this.#stopping.promise, back]),
      this.#agentProcess.leave,
    );
  }

  /** Undefined if there are too many. */
  #mirroredCall(id: string): MirroredCall | undefined {
    const known = this.#mirroredCalls.get(id);
    if (known !== undefined || this.#mirroredCalls.size >= CALLS_MAX) return known;
    const made = new MirroredCall(id, this.#parts());
    this.#mirroredCalls.set(id, made);
    return made;
  }

  #parts(): MirroredCallParts {
    const { sessionId } = this;
    const ask = async (toolCallId: string): Promise<void> => {
      this.#agentProcess.request(CANCEL_CALL, { sessionId, toolCallId }).catch(ignore);
    };
    const stopper = ({ id, sort }: CallChange): (() => Promise<void>) | undefined => {
      if (this.#agentProcess.capabilities.cancelsCalls) return () => ask(id);
      // Its processes are those that started while it was the only call.
      return sort === "execute" && this.#processes.areListed
        ? () => this.#processes.endOfCall(this.#openCalls, this.#turn.graceMs * CALL_END_SHARE)
        : undefined;
    };
    const forbidden = (title: string): void => {
      // The call began without a request and cannot be prevented; the run is stopped instead.
      this.#turn
        .stop(`${this.#agentProcess.name} did without asking what a rule of the host forbids: ${title}`)
        .catch(ignore);
    };
    return { turn: this.#turn, stopper, forbidden, ended: () => this.#processes.callEnded(this.#openCalls) };
  }

  get #openCalls(): number {
    return [...this.#mirroredCalls.values()].filter(({ phase }) => phase === "called").length;
  }

  #stop(): void {
    const { clock, graceMs } = this.#turn;
    const { sessionId } = this;
    const endMs = Math.min(this.#agentProcess.stopMs ?? graceMs * END_SHARE, graceMs * END_SHARE_MAX);
    this.#stopBy = clock.elapsed() + graceMs;
    this.#agentProcess.notify("session/cancel", { sessionId });
    this.#stopping.resolve();
    this.#dispose = [
      clock.after(endMs * (REPEAT_SHARE / END_SHARE), () => this.#again.abort()),
      clock.after(endMs, () => void this.#agentProcess.stop({ kind: "policy", note: NOT_STOPPED })),
    ];
  }

  /** Ends the processes that the agent started and left running, after it has answered a cancel. */
  async #endCommands(): Promise<void> {
    if (!this.#turn.signal.aborted) return;
    for (const dispose of this.#dispose.splice(0)) dispose();
    if (!this.#agentProcess.isOpen) {
      // It answered while its process was being ended.
      await this.#agentProcess.ended;
      return;
    }
    const leftMs = this.#stopBy - this.#turn.clock.elapsed();
    const note = await this.#processes.end(leftMs);
    await this.#passingOn;
    if (note !== undefined) this.#turn.emit(note);
  }

  async #failed(error: unknown): Promise<unknown> {
    const { signal } = this.#turn;
    const { name } = this.#agentProcess;
    const text = error instanceof AgentError ? error.message : agentErrorText(error);
    if (text === undefined || !this.#agentProcess.isOpen) {
      const result = await this.#agentProcess.stop({ kind: "policy", note: "Its connection is broken." });
      await this.#settleCalls(
        `${name} ended before it reported the outcome of this call. Whether it was done is not known.`,
      );
      return signal.aborted
        ? signal.reason
        : await this.#agentProcess.failed("agent_ended", "ended in the middle of the work", result);
    }
    await this.#endCommands();
    await this.#settleCalls(`${name} failed and did not report the outcome of this call.`);
    if (signal.aborted) return signal.reason;
    if (error instanceof AgentError) return error;
    return new AgentError("agent_failed", `${name} failed: ${text}`, { cause: error });
  }

  /** Ends all calls that are still open. */
  async #settleCalls(why: string): Promise<void> {
    await this.#passingOn;
    const open = [...this.#mirroredCalls.values()];
    for (const mirroredCall of open) mirroredCall.end({ kind: "unknown", why });
    await Promise.all(open.map((mirroredCall) => mirroredCall.result));
  }
}

/** The latest time, as a share of the grace period, at which an agent that has not answered a cancel is ended. */
const END_SHARE_MAX = 0.8;

/** Share of the grace period for the commands of one call, from SIGTERM to SIGKILL. */
const CALL_END_SHARE = 0.4;

const NO_ANSWER = "answered the prompt without a stop reason.";

const NOT_STOPPED = "It did not stop when it was asked to.";

const ignore = (): void => {};
