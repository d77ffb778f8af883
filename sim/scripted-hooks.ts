// The host's hooks, in a simulation: what is asked before a call stands still until the scheduler has an answer, and
// what is told is held against the log.
import type { CallId } from "../src/core/model/ids.ts";
import type { Json } from "../src/core/model/prompt.ts";
import type { HookedCall, Hooks, Verdict } from "../src/ports/hooks.ts";
import type { Facts } from "./facts.ts";

export type Say = "nothing" | "replace" | "approve" | "deny" | "throw";

export interface HookParts {
  readonly facts: Facts;
  readonly note: (line: string) => void;
  readonly violate: (rule: string, message: string) => void;
}

/** A call that waits for what the host says. */
export class HookActor {
  readonly call: HookedCall;
  done = false;
  readonly #resolve: (verdict: Verdict | undefined) => void;
  readonly #reject: (error: unknown) => void;

  constructor(call: HookedCall, resolve: (verdict: Verdict | undefined) => void, reject: (error: unknown) => void) {
    this.call = call;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  say(what: Say): Verdict | undefined {
    this.done = true;
    const verdict = verdictOf(what, this.call.input);
    if (what === "throw") this.#reject(new Error("The simulated hook failed."));
    else this.#resolve(verdict);
    return verdict;
  }
}

export class ScriptedHooks {
  readonly actors: HookActor[] = [];
  /** What the host has said to each call in this life. */
  readonly said = new Map<CallId, Say>();
  readonly #told = new Set<string>();
  readonly #parts: HookParts;
  over = false;

  constructor(parts: HookParts) {
    this.#parts = parts;
  }

  get waiting(): readonly HookActor[] {
    return this.actors.filter((actor) => !actor.done);
  }

  say(actor: HookActor, what: Say): void {
    const { callId } = actor.call;
    this.#parts.note(`hook says ${what} to ${callId}`);
    this.said.set(callId, what);
    actor.say(what);
  }

  readonly hooks: Hooks = {
    beforeCall: (call) =>
      new Promise((resolve, reject) => {
        if (!this.over) this.actors.push(new HookActor(call, resolve, reject));
      }),
    afterCall: ({ callId, outcome }) => {
      const settled = this.#parts.facts.works.get(callId)?.settled;
      this.#once(`the end of ${callId}`, JSON.stringify(settled?.outcome) === JSON.stringify(outcome));
    },
    onCancel: ({ runId, callId }) => {
      const { works, runs } = this.#parts.facts;
      const cancel = callId === undefined ? runs.get(runId)?.cancel : works.get(callId)?.cancel;
      // A run that is withdrawn before it begins has no record of a request: its outcome is the record.
      const isWithdrawn = callId === undefined && runs.get(runId)?.outcome?.kind === "cancelled";
      this.#once(`the cancel of ${callId ?? runId}`, cancel !== undefined || isWithdrawn);
    },
    onOutcome: ({ runId, outcome }) => {
      const run = this.#parts.facts.runs.get(runId);
      this.#once(`the outcome of ${runId}`, JSON.stringify(run?.outcome) === JSON.stringify(outcome));
    },
  };

  #once(what: string, durable: boolean): void {
    if (this.over) return;
    if (!durable) this.#parts.violate("G16", `The host was told of ${what} before it was durable.`);
    if (this.#told.has(what)) this.#parts.violate("G16", `The host was told twice of ${what}.`);
    this.#told.add(what);
  }
}

/** What a call is given in place of its input. */
export const replaced = (input: Json): Json => ({ instead: input });

function verdictOf(what: Say, input: Json): Verdict | undefined {
  switch (what) {
    case "replace":
      return { kind: "allow", input: replaced(input) };
    case "approve":
      return { kind: "allow", approved: true };
    case "deny":
      return { kind: "deny", note: "not today" };
    default:
      return undefined;
  }
}
