// What the host wants to hear of, or to have a say in. A hook that throws or hangs is reported, and stops nobody.
import { ControlError, messageOf } from "../core/control-error.ts";
import type { Recorded } from "../core/event.ts";
import type { SessionId } from "../core/ids.ts";
import { HOOK_MS } from "../core/limits.ts";
import type { Clock, HookedCall, Hooks, Notify, Verdict } from "../ports.ts";
import { LiveCall } from "./live-call.ts";
import type { LiveLane } from "./live-lane.ts";

export class HookRunner {
  readonly #hooks: Hooks;
  readonly #clock: Clock;
  readonly #notify: Notify;

  constructor(hooks: Hooks, clock: Clock, notify: Notify) {
    this.#hooks = hooks;
    this.#clock = clock;
    this.#notify = notify;
  }

  get beforeCalls(): boolean {
    return this.#hooks.beforeCall !== undefined;
  }

  /** What the host says to a call. A host that cannot say is not taken for one that agrees. */
  async before(call: HookedCall): Promise<Verdict | undefined> {
    try {
      const verdict = await this.#bounded("beforeCall", call.sessionId, () => this.#hooks.beforeCall?.(call));
      return verdict ?? undefined;
    } catch (error) {
      const message = `It was not carried out: the host's hook before calls failed. ${messageOf(error)}`;
      throw new ControlError("unavailable", message, { cause: error });
    }
  }

  /** These facts are durable: whoever wanted to hear of them is told. */
  recorded(lane: LiveLane, events: readonly Recorded[]): void {
    const { afterCall, onCancel, onOutcome, onSessionEnd } = this.#hooks;
    if (!afterCall && !onCancel && !onOutcome && !onSessionEnd) return;
    const sessionId = lane.id;
    for (const event of events) {
      if (event.type === "call.settled") this.#settled(lane, event);
      if (event.type === "run.cancel_requested" || event.type === "call.cancel_requested") {
        const { runId, reason } = event;
        const call = event.type === "call.cancel_requested" ? { callId: event.callId } : {};
        this.#tell("onCancel", sessionId, () => this.#hooks.onCancel?.({ sessionId, runId, ...call, reason }));
      } else if (event.type === "run.settled") {
        const { runId, outcome } = event;
        this.#tell("onOutcome", sessionId, () => this.#hooks.onOutcome?.({ sessionId, runId, outcome }));
      } else if (event.type === "session.closed") {
        const { reason } = event;
        this.#tell("onSessionEnd", sessionId, () => this.#hooks.onSessionEnd?.({ sessionId, reason }));
      }
    }
  }

  #settled(lane: LiveLane, { callId, outcome, result }: Recorded & { type: "call.settled" }): void {
    const owner = lane.work(callId)?.owner;
    // A call of an earlier life, whose end was not known: it has no handle here.
    if (!(owner instanceof LiveCall)) return;
    const end = { ...owner.hooked(), outcome, ...(result === undefined ? {} : { result }) };
    this.#tell("afterCall", lane.id, () => this.#hooks.afterCall?.(end));
  }

  #tell(hook: keyof Hooks, session: SessionId, call: () => Promise<void> | void): void {
    // Reported where it failed; there is nothing else to be done about it.
    this.#bounded(hook, session, call).catch(() => {});
  }

  async #bounded<T>(hook: keyof Hooks, session: SessionId, call: () => Promise<T> | T): Promise<T> {
    let takeBack = (): void => {};
    try {
      const limit = new Promise<never>((_, reject) => {
        const tooLong = (): void => reject(new Error(`The hook ${hook} did not end within ${HOOK_MS} ms.`));
        takeBack = this.#clock.after(HOOK_MS, tooLong, "idle");
      });
      return await Promise.race([call(), limit]);
    } catch (error) {
      this.#notify({ type: "hook", hook, session, message: messageOf(error) });
      throw error;
    } finally {
      takeBack();
    }
  }
}
