// Runs the host's hooks. A hook that throws or times out is reported, and delays nothing else.
import { ControlError, messageOf } from "../../core/errors.ts";
import { checkCallJson, invalid, isObject } from "../../core/input.ts";
import { HOOK_MS } from "../../core/limits.ts";
import type { Recorded } from "../../core/model/event.ts";
import type { SessionId } from "../../core/model/ids.ts";
import type { Clock } from "../../ports/clock.ts";
import type { HookedCall, Hooks, Notify, Verdict } from "../../ports/hooks.ts";
import type { SessionState } from "../log/session-state.ts";

export class HookRunner {
  readonly #hooks: Hooks;
  readonly #clock: Clock;
  readonly #notify: Notify;
  /** Hooks that are running. */
  readonly #running = new Set<Promise<void>>();

  constructor(hooks: Hooks, clock: Clock, notify: Notify) {
    this.#hooks = hooks;
    this.#clock = clock;
    this.#notify = notify;
  }

  get beforeCalls(): boolean {
    return this.#hooks.beforeCall !== undefined;
  }

  /** The host's verdict on a call. A failing hook does not count as approval. */
  async before(call: HookedCall): Promise<Verdict | undefined> {
    try {
      // Checked inside the hook, so that an invalid verdict is reported like any failure of a hook.
      return await this.#bounded("beforeCall", call.sessionId, async () =>
        checkVerdict(await this.#hooks.beforeCall?.(call), call.name),
      );
    } catch (error) {
      const message = `It was not carried out: the host's hook before calls failed. ${messageOf(error)}`;
      throw new ControlError("unavailable", message, { cause: error }); // @fault failed-hook-agrees
    }
  }

  /** Calls the hooks for events that are durable. */
  recorded(lane: SessionState, events: readonly Recorded[]): void {
    const { afterCall, onCancel, onOutcome, onSessionEnd } = this.#hooks;
    if (!afterCall && !onCancel && !onOutcome && !onSessionEnd) return;
    const sessionId = lane.id;
    for (const event of events) {
      if (event.type === "call.settled") this.#settled(lane, event);
      if (event.type === "run.cancel_requested" || event.type === "call.cancel_requested") {
        const { runId, reason } = event;
        const call = event.type === "call.cancel_requested" ? { callId: event.callId } : {};
        this.#callHook("onCancel", sessionId, () => this.#hooks.onCancel?.({ sessionId, runId, ...call, reason }));
      } else if (event.type === "run.settled") {
        this.#runEnded(sessionId, event);
      } else if (event.type === "session.closed") {
        const { reason } = event;
        this.#callHook("onSessionEnd", sessionId, () => this.#hooks.onSessionEnd?.({ sessionId, reason }));
      }
    }
  }

  #runEnded(sessionId: SessionId, { type: _, seq: __, at: ___, ...end }: Recorded & { type: "run.settled" }): void {
    const { runId, outcome, turnId } = end;
    // A run that never began was not asked to stop: it was withdrawn.
    if (turnId === undefined && outcome.kind === "cancelled") {
      const { reason } = outcome;
      this.#callHook("onCancel", sessionId, () => this.#hooks.onCancel?.({ sessionId, runId, reason }));
    }
    this.#callHook("onOutcome", sessionId, () => this.#hooks.onOutcome?.({ sessionId, ...end }));
  }

  #settled(lane: SessionState, { callId, outcome, result }: Recorded & { type: "call.settled" }): void {
    const call = lane.work(callId)?.hooked();
    // Undefined: a call of an earlier worker.
    if (call === undefined) return;
    const end = { ...call, outcome, ...(result === undefined ? {} : { result }) };
    this.#callHook("afterCall", lane.id, () => this.#hooks.afterCall?.(end));
  }

  #callHook(hook: keyof Hooks, session: SessionId, call: () => Promise<void> | void): void {
    // The failure has been reported.
    const ended = this.#bounded(hook, session, call)
      .catch(() => {})
      .finally(() => this.#running.delete(ended));
    this.#running.add(ended);
  }

  /** Resolves when no hook is running. Each has its own time limit. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  async #bounded<T>(hook: keyof Hooks, session: SessionId, call: () => Promise<T> | T): Promise<T> {
    let dispose = (): void => {};
    try {
      const limit = new Promise<never>((_, reject) => {
        const tooLong = (): void => reject(new Error(`The hook ${hook} did not end within ${HOOK_MS} ms.`));
        dispose = this.#clock.after(HOOK_MS, tooLong, "idle");
      });
      return await Promise.race([call(), limit]);
    } catch (error) {
      this.#notify({ type: "hook", hook, session, message: messageOf(error) });
      throw error;
    } finally {
      dispose();
    }
  }
}

/** Copies a verdict, or throws. Only undefined is no opinion. */
function checkVerdict(given: unknown, name: string): Verdict | undefined {
  if (given === undefined) return undefined;
  const { kind, ...rest } = isObject(given) ? given : {};
  // A denial without a valid note is still a denial.
  if (kind === "deny") return { kind, note: isText(rest.note) ? rest.note : "It gives no reason." };
  const { input, approved, ...unknown } = rest;
  const known = kind === "allow" && (approved === undefined || typeof approved === "boolean");
  // A misspelt field may be what the host wanted to change.
  if (!known || Object.keys(unknown).length > 0) {
    throw invalid(`The hook beforeCall returned ${shown(given)}, which is no verdict. ${ALLOWED}`);
  }
  const what = `The input that the hook beforeCall gave to ${name}`;
  return {
    kind,
    ...(input === undefined ? {} : { input: checkCallJson(input, what) }),
    ...(approved === undefined ? {} : { approved }),
  };
}

const ALLOWED =
  'It may return { kind: "deny", note }, { kind: "allow", input, approved } (`approved` is true or false), ' +
  "or undefined if it has no opinion.";

/** A short description of a returned value: of an object, the field names, and only the values that a verdict has. */
function shown(given: unknown): string {
  if (typeof given === "string") return `"${given.slice(0, 40).toWellFormed()}"`;
  if (Array.isArray(given)) return "a list";
  if (given === null || SHORT.has(typeof given)) return String(given);
  if (!isObject(given)) return `a ${typeof given}`;
  const isShown = (key: string): boolean => key === "kind" || key === "approved";
  const fields = Object.keys(given).map((key) => (isShown(key) ? `${key}: ${named(given[key])}` : key));
  return `{ ${fields.join(", ")} }`.slice(0, 200).toWellFormed();
}

const SHORT: ReadonlySet<string> = new Set(["boolean", "number", "undefined"]);
const named = (value: unknown): string => (isObject(value) ? "an object" : shown(value));
const isText = (value: unknown): value is string => typeof value === "string" && value.trim() !== "";
