// What the host wants to hear of, or to have a say in. A hook that throws or hangs is reported, and stops nobody.
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
  /** Hooks that were called and have not ended. */
  readonly #atWork = new Set<Promise<void>>();

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
      // Checked where failures are reported: an answer that is no verdict is the failure of a hook like any other.
      return await this.#bounded("beforeCall", call.sessionId, async () =>
        checkVerdict(await this.#hooks.beforeCall?.(call), call.name),
      );
    } catch (error) {
      const message = `It was not carried out: the host's hook before calls failed. ${messageOf(error)}`;
      throw new ControlError("unavailable", message, { cause: error }); // @fault failed-hook-agrees
    }
  }

  /** These facts are durable: whoever wanted to hear of them is told. */
  recorded(lane: SessionState, events: readonly Recorded[]): void {
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

  #settled(lane: SessionState, { callId, outcome, result }: Recorded & { type: "call.settled" }): void {
    const call = lane.work(callId)?.hooked();
    // Undefined: a call of an earlier life, whose end was not known.
    if (call === undefined) return;
    const end = { ...call, outcome, ...(result === undefined ? {} : { result }) };
    this.#tell("afterCall", lane.id, () => this.#hooks.afterCall?.(end));
  }

  #tell(hook: keyof Hooks, session: SessionId, call: () => Promise<void> | void): void {
    // Reported where it failed; there is nothing else to be done about it.
    const ended = this.#bounded(hook, session, call)
      .catch(() => {})
      .finally(() => this.#atWork.delete(ended));
    this.#atWork.add(ended);
  }

  /** Resolves when no hook is at work. Each is bounded by its own limit. */
  async idle(): Promise<void> {
    while (this.#atWork.size > 0) await Promise.all(this.#atWork);
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

/** A copy of what the host says, or throws: only one that says nothing at all has no opinion. */
function checkVerdict(given: unknown, name: string): Verdict | undefined {
  if (given === undefined) return undefined;
  const { kind, ...rest } = isObject(given) ? given : {};
  // Whoever denies has denied, also without words that can be passed on.
  if (kind === "deny") return { kind, note: isText(rest.note) ? rest.note : "It gives no reason." };
  const { input, approved, ...unknown } = rest;
  const known = kind === "allow" && (approved === undefined || typeof approved === "boolean");
  // A field with a slip in its name may be what the host wanted changed.
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

/** What somebody sees of an answer: of an object the names, and only what a verdict has of their values. */
function shown(given: unknown): string {
  if (typeof given === "string") return `"${given.slice(0, 40).toWellFormed()}"`;
  if (Array.isArray(given)) return "a list";
  if (given === null || SHORT.has(typeof given)) return String(given);
  if (!isObject(given)) return `a ${typeof given}`;
  const told = (key: string): boolean => key === "kind" || key === "approved";
  const fields = Object.keys(given).map((key) => (told(key) ? `${key}: ${named(given[key])}` : key));
  return `{ ${fields.join(", ")} }`.slice(0, 200).toWellFormed();
}

const SHORT: ReadonlySet<string> = new Set(["boolean", "number", "undefined"]);
const named = (value: unknown): string => (isObject(value) ? "an object" : shown(value));
const isText = (value: unknown): value is string => typeof value === "string" && value.trim() !== "";
