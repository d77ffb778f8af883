// The agent's side of a simulation: turns and calls that stand still until the scheduler moves them. They emit, call,
// take in steers, end well, end badly, heed a cancel, ignore it, and come too late.
import type { RunId, Work } from "../src/core/ids.ts";
import type { Agent, LiveCall, Turn, TurnResult } from "../src/ports.ts";

/** How it ended, as the agent itself knows it. */
export type ActorEnd = "completed" | "failed" | undefined;

export class TurnActor {
  readonly turn: Turn;
  /** What it said so far. */
  text = "";
  end: ActorEnd;
  /** Calls it has asked for and heard nothing of yet. */
  waitsFor = 0;
  /** It does not stop when it is asked to. */
  readonly stubborn: boolean;
  readonly #resolve: (result: TurnResult | undefined) => void;
  readonly #reject: (error: unknown) => void;

  constructor(
    turn: Turn,
    stubborn: boolean,
    resolve: (result: TurnResult | undefined) => void,
    reject: (error: unknown) => void,
  ) {
    this.turn = turn;
    this.stubborn = stubborn;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  get id(): Work {
    return this.turn.turnId;
  }

  get runId(): RunId {
    return this.turn.runId;
  }

  get aborted(): boolean {
    return this.turn.signal.aborted;
  }

  emit(text: string): void {
    this.text += text;
    this.turn.emit(text);
  }

  complete(next: "turn" | "end"): void {
    this.end = "completed";
    this.#resolve({ next });
  }

  fail(): void {
    this.end = "failed";
    this.#reject(new Error("The simulated agent failed."));
  }
}

export class CallActor {
  readonly live: LiveCall;
  /** The turn that asked for it. */
  readonly turn: TurnActor;
  readonly input: number;
  readonly stubborn: boolean;
  end: ActorEnd;
  readonly #resolve: (value: number) => void;
  readonly #reject: (error: unknown) => void;

  constructor(
    call: Pick<CallActor, "live" | "turn" | "input" | "stubborn">,
    resolve: (value: number) => void,
    reject: (error: unknown) => void,
  ) {
    this.live = call.live;
    this.turn = call.turn;
    this.input = call.input;
    this.stubborn = call.stubborn;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  get id(): Work {
    return this.live.callId;
  }

  get runId(): RunId {
    return this.turn.runId;
  }

  get aborted(): boolean {
    return this.live.signal.aborted;
  }

  complete(): void {
    this.end = "completed";
    this.#resolve(this.input);
  }

  fail(): void {
    this.end = "failed";
    this.#reject(new Error("The simulated tool failed."));
  }
}

export type Actor = TurnActor | CallActor;

/** Who must be told when something begins; throws nothing, decides nothing. */
export interface Watch {
  turnBegan(actor: TurnActor): void;
  callBegan(actor: CallActor): void;
  /** A turn was told what became of its call. */
  callAnswered(actor: TurnActor, answer: string): void;
  /** A turn was given the text of a steer. */
  steerHeard(actor: TurnActor, text: string): void;
  /** Whether the next actor is one that does not stop when asked. */
  stubborn(): boolean;
}

/** The agents and tools of one life of the engine. */
export class Actors {
  readonly turns: TurnActor[] = [];
  readonly calls: CallActor[] = [];
  readonly #watch: Watch;
  /** How many calls each run has asked for in this life: after a crash an agent asks for the same ones again. */
  readonly #asked = new Map<RunId, number>();
  over = false;

  constructor(watch: Watch) {
    this.#watch = watch;
  }

  readonly agent: Agent = (turn) =>
    new Promise((resolve, reject) => {
      if (this.over) return;
      const actor = new TurnActor(turn, this.#watch.stubborn(), resolve, reject);
      this.turns.push(actor);
      this.#watch.turnBegan(actor);
    });

  /** Those that have not ended. */
  get going(): readonly Actor[] {
    return [...this.turns, ...this.calls].filter((actor) => actor.end === undefined);
  }

  /** A turn asks for its next call. The same call of the same run has the same input, in every life. */
  call(actor: TurnActor, options: { readonly idempotent: boolean }): void {
    const input = (this.#asked.get(actor.runId) ?? 0) + 1;
    this.#asked.set(actor.runId, input);
    actor.waitsFor += 1;
    const told = (answer: string): void => {
      actor.waitsFor -= 1;
      if (!this.over) this.#watch.callAnswered(actor, answer);
    };
    actor.turn
      .call("tool", input, (live) => this.#execute(live, actor, input), options)
      .then(
        (result) => told(`${result.kind} ${result.callId}`),
        () => told("refused"),
      );
  }

  takeSteers(actor: TurnActor): void {
    actor.turn.takeSteers().then(
      (prompts) => {
        if (!this.over) for (const { text } of prompts) this.#watch.steerHeard(actor, text);
      },
      // The store was in trouble; the steers wait for the next turn.
      () => undefined,
    );
  }

  #execute(live: LiveCall, turn: TurnActor, input: number): Promise<number> {
    return new Promise((resolve, reject) => {
      if (this.over) return;
      const actor = new CallActor({ live, turn, input, stubborn: this.#watch.stubborn() }, resolve, reject);
      this.calls.push(actor);
      this.#watch.callBegan(actor);
    });
  }
}
