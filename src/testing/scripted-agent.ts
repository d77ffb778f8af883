// An agent that a test controls: by a script, or turn by turn. It waits for the test only, never for time.
//
// Invariants
// 1. A turn does only what a script or the test makes it do. So it ignores a cancel until it is made to stop, like an
//    uncooperative agent.
import { Bug } from "../core/bug.ts";
import type { Json, Prompt } from "../core/model/prompt.ts";
import type { Agent, CallOptions, CallResult, Execute, Turn, TurnResult } from "../ports/agent.ts";
import type { Gate } from "./gate.ts";
import { ScriptedCall } from "./scripted-call.ts";

/** The next action of a scripted turn. A script without an end completes the turn. */
export type Step =
  | { readonly do: "say"; readonly text: string }
  /** Waits until the gate is open; a cancel ends the wait, unless it is to be ignored. */
  | { readonly do: "wait"; readonly for: Gate; readonly onCancel?: "heed" | "ignore" }
  | {
      readonly do: "call";
      readonly name: string;
      readonly input?: Json;
      readonly execute?: Execute;
      readonly options?: CallOptions;
    }
  | { readonly do: "take-steers" }
  | { readonly do: "complete"; readonly result?: TurnResult | string }
  | { readonly do: "fail"; readonly message: string }
  /** Never ends, even when it is cancelled. */
  | { readonly do: "hang" };

export interface ScriptedAgent extends Agent {
  /** The next turn that starts without a script, for the test to drive. Each is returned once. */
  nextTurn(): Promise<ScriptedTurn>;
  /** Every turn so far, scripted or not. */
  readonly turns: readonly ScriptedTurn[];
}

/** The first turn plays the first script, and so on; the test drives the turns after the last script. */
export function scriptedAgent(...scripts: readonly (readonly Step[])[]): ScriptedAgent {
  const turns: ScriptedTurn[] = [];
  const unclaimed: ScriptedTurn[] = [];
  const waiting: ((turn: ScriptedTurn) => void)[] = [];
  const agent = (given: Turn): Promise<TurnResult | string | undefined> => {
    const turn = new ScriptedTurn(given);
    const script = scripts[turns.length];
    turns.push(turn);
    if (script !== undefined) void turn.play(script);
    else (waiting.shift() ?? ((one) => unclaimed.push(one)))(turn);
    return turn.ended;
  };
  const nextTurn = (): Promise<ScriptedTurn> => {
    const turn = unclaimed.shift();
    return turn === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(turn);
  };
  return Object.assign(agent, { nextTurn, turns });
}

/** One turn, driven by the test. */
export class ScriptedTurn {
  /** The turn that the agent received. */
  readonly given: Turn;
  readonly ended: Promise<TurnResult | string | undefined>;
  /** The calls it has made, oldest first. */
  readonly calls: ScriptedCall[] = [];
  /** The results of the calls that its script made. */
  readonly results: CallResult[] = [];
  readonly taken: Prompt[] = [];
  #complete!: (result: TurnResult | string | undefined) => void;
  #fail!: (error: unknown) => void;

  constructor(given: Turn) {
    this.given = given;
    this.ended = new Promise((resolve, reject) => {
      this.#complete = resolve;
      this.#fail = reject;
    });
  }

  say(text: string): void {
    this.given.emit(text);
  }

  /** Makes a call. `execute` performs it; without one, the test does, through the returned handle. */
  call(name: string, input: Json = null, execute?: Execute, options?: CallOptions): ScriptedCall {
    const call = new ScriptedCall(name, input);
    call.result = this.given.call(name, input, (live) => call.begin(live, execute) as Promise<Json>, options);
    // A test need not handle the result.
    call.result.catch(() => undefined);
    this.calls.push(call);
    return call;
  }

  takeSteers(): Promise<readonly Prompt[]> {
    return this.given.takeSteers();
  }

  complete(result?: TurnResult | string): void {
    this.#complete(result);
  }

  /** Ends, and requests another turn once its calls have settled. */
  askAgain(text?: string): void {
    this.#complete(text === undefined ? { next: "turn" } : { next: "turn", text });
  }

  fail(error: unknown = new Error("The agent failed.")): void {
    this.#fail(error);
  }

  /** Ends as a well-behaved agent does when it is cancelled. Fails the test if it was not cancelled. */
  endCancelled(): void {
    if (!this.given.signal.aborted) throw new Bug("endCancelled(): this turn was not cancelled");
    this.#fail(this.given.signal.reason);
  }

  /** Resolves when the turn is cancelled. */
  get cancelled(): Promise<void> {
    return aborted(this.given.signal);
  }

  async play(script: readonly Step[]): Promise<void> {
    try {
      for (const step of script) if ((await this.#do(step)) === "over") return;
      this.complete();
    } catch (error) {
      this.fail(error);
    }
  }

  async #do(step: Step): Promise<"on" | "over"> {
    switch (step.do) {
      case "say":
        this.say(step.text);
        return "on";
      case "wait":
        await (step.onCancel === "ignore" ? step.for.opened : Promise.race([step.for.opened, this.cancelled]));
        if (step.onCancel !== "ignore" && !step.for.isOpen) this.endCancelled();
        return "on";
      case "call":
        this.results.push(await this.call(step.name, step.input ?? null, step.execute, step.options).result);
        return "on";
      case "take-steers":
        this.taken.push(...(await this.takeSteers()));
        return "on";
      case "complete":
        this.complete(step.result);
        return "over";
      case "fail":
        this.fail(new Error(step.message));
        return "over";
      case "hang":
        return "over";
    }
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
