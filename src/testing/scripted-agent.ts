// An agent that does what the test says: by a script, or turn by turn. It never waits for time, only for the test.
//
// Invariants
// 1. Nothing happens in a turn that neither a script nor the test asked for. So it also ignores a cancel until it is
//    told to heed it, like the agents one has to defend against.
import { Bug } from "../core/bug.ts";
import type { Json, Prompt } from "../core/model/prompt.ts";
import type { Agent, CallOptions, CallResult, Execute, Turn, TurnResult } from "../ports/agent.ts";
import type { Gate } from "./gate.ts";
import { ScriptedCall } from "./scripted-call.ts";

/** What a scripted turn does next. A script that ends without an end completes the turn. */
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
  /** Never ends, whatever anybody asks. */
  | { readonly do: "hang" };

export interface ScriptedAgent extends Agent {
  /** The next turn that begins and has no script, for the test to drive. Each is handed out once. */
  nextTurn(): Promise<ScriptedTurn>;
  /** Every turn so far, scripted or not. */
  readonly turns: readonly ScriptedTurn[];
}

/** The first turn plays the first script, and so on; turns beyond them are the test's to drive. */
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

/** One turn in the hands of the test. */
export class ScriptedTurn {
  /** What the agent was given. */
  readonly given: Turn;
  readonly ended: Promise<TurnResult | string | undefined>;
  /** The calls it has made, oldest first. */
  readonly calls: ScriptedCall[] = [];
  /** What came back of the calls its script made, and of the steers it took in. */
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

  /** Asks for a call. Its work is done by `execute`, or, without one, by the test through the handle. */
  call(name: string, input: Json = null, execute?: Execute, options?: CallOptions): ScriptedCall {
    const call = new ScriptedCall(name, input);
    call.result = this.given.call(name, input, (live) => call.begin(live, execute) as Promise<Json>, options);
    // Whoever does not look at the result is not punished for it.
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

  /** Ends, and asks for another turn once its calls have settled. */
  askAgain(text?: string): void {
    this.#complete(text === undefined ? { next: "turn" } : { next: "turn", text });
  }

  fail(error: unknown = new Error("The agent failed.")): void {
    this.#fail(error);
  }

  /** Ends as a well-behaved agent does when it is cancelled. Fails the test if nobody has cancelled it. */
  endCancelled(): void {
    if (!this.given.signal.aborted) throw new Bug("heedCancel(): this turn was not cancelled");
    this.#fail(this.given.signal.reason);
  }

  /** Resolves when the turn is asked to stop. */
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
