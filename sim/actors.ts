// The agent's side of a simulation: turns and calls that stand still until the scheduler moves them. They emit, call,
// ask, read, take in steers, end well, end badly, heed a cancel, ignore it, and come too late.
import type { Usage } from "../src/core/model/event.ts";
import type { RunId, Work } from "../src/core/model/ids.ts";
import type { Json } from "../src/core/model/prompt.ts";
import type { Message } from "../src/core/read/transcript.ts";
import type {
  Agent,
  CallResult,
  LiveCall,
  QuestionRequest,
  QuestionResult,
  Turn,
  TurnResult,
} from "../src/ports/agent.ts";
import { Places } from "./places.ts";
import { optionsOf, type Plan, planAgain, planOf, requestOf, type Trait } from "./plan.ts";
import { ProcessUser, type ProcessWatch } from "./process-user.ts";

/** How it ended, as the agent itself knows it. */
export type ActorEnd = "completed" | "failed" | undefined;

/** What an actor throws if it is not the signal's reason. */
const FAILED = "The simulated work failed.";

/** What turns and calls have in common. */
abstract class Working<T> {
  end: ActorEnd;
  /** The message of the error it threw, unless that was the signal's reason. */
  threw: string | undefined;
  /** Questions it has put to people, and heard nothing of yet. */
  asks = 0;
  /** It does not stop when it is asked to. */
  readonly stubborn: boolean;
  /** It was stopped, and tries again. */
  retries = false;
  protected readonly resolve: (value: T) => void;
  protected readonly reject: (error: unknown) => void;

  constructor(stubborn: boolean, resolve: (value: T) => void, reject: (error: unknown) => void) {
    this.stubborn = stubborn;
    this.resolve = resolve;
    this.reject = reject;
  }

  /** Whether there is anything that the scheduler can have it do. */
  get movable(): boolean {
    return true;
  }

  abstract get id(): Work;
  abstract get runId(): RunId;

  abstract get signal(): AbortSignal;

  get aborted(): boolean {
    return this.signal.aborted;
  }

  fail(): void {
    this.end = "failed";
    this.threw = FAILED;
    this.reject(new Error(FAILED));
  }

  /** It ends because it was asked to, and says no more than that. */
  heed(): void {
    this.end = "failed";
    this.reject(this.signal.reason);
  }
}

export class TurnActor extends Working<TurnResult | undefined> {
  readonly turn: Turn;
  /** What it said so far. */
  text = "";
  /** Calls it has asked for and heard nothing of yet. */
  waitsFor = 0;
  /** Calls it has asked for. */
  asked = 0;
  /** Anything else it waits for: a transcript, a stop, a summary. */
  pending = 0;
  readonly metered: boolean;

  constructor(
    turn: Turn,
    how: { readonly stubborn: boolean; readonly metered: boolean },
    resolve: (result: TurnResult | undefined) => void,
    reject: (error: unknown) => void,
  ) {
    super(how.stubborn, resolve, reject);
    this.turn = turn;
    this.metered = how.metered;
    if (how.metered) turn.meter(() => ({ usage: this.usage }));
  }

  get id(): Work {
    return this.turn.turnId;
  }

  get runId(): RunId {
    return this.turn.runId;
  }

  get signal(): AbortSignal {
    return this.turn.signal;
  }

  /** What it has cost so far. */
  get usage(): Usage {
    return { inputTokens: 1, outputTokens: this.text.length, estimated: true };
  }

  hasSaid(text: string, from: number): boolean {
    return this.text.startsWith(text, from);
  }

  emit(text: string): void {
    this.text += text;
    this.turn.emit(text);
  }

  complete(next: "turn" | "end", calls?: TurnResult["calls"]): void {
    this.end = "completed";
    const cost = this.metered ? { usage: this.usage } : {};
    this.resolve(calls === undefined ? { next, ...cost } : { calls, ...cost });
  }
}

export class CallActor extends Working<Json> {
  readonly live: LiveCall;
  /** The turn that asked for it, if it did so while it went on. */
  readonly turn: TurnActor | undefined;
  readonly plan: Plan;
  /** What it has put aside, and noted as changed, in this order. */
  readonly partials: Json[] = [];
  readonly changes: string[] = [];
  readonly processes: ProcessUser;
  readonly #value: string;

  constructor(
    call: { readonly live: LiveCall; readonly turn: TurnActor | undefined; readonly plan: Plan; readonly life: number },
    how: { readonly stubborn: boolean; readonly watch: ProcessWatch },
    resolve: (value: Json) => void,
    reject: (error: unknown) => void,
  ) {
    super(how.stubborn, resolve, reject);
    this.live = call.live;
    this.processes = new ProcessUser(call.live, how.watch);
    this.turn = call.turn;
    this.plan = call.plan;
    this.#value = `${call.live.callId} in life ${call.life}`;
  }

  get id(): Work {
    return this.live.callId;
  }

  get runId(): RunId {
    return this.live.runId;
  }

  get signal(): AbortSignal {
    return this.live.signal;
  }

  /** Whether it hears of a stop at all. */
  get hears(): boolean {
    return !this.plan.traits.includes("deaf");
  }

  /** Its own, and no other's: a result that turns up elsewhere is known. */
  get value(): Json {
    return this.#value;
  }

  putAside(): void {
    const partial = `part ${this.partials.length + 1} of ${this.#value}`;
    this.partials.push(partial);
    this.live.partial(partial);
  }

  change(): void {
    const what = `change ${this.changes.length + 1} of ${this.#value}`;
    this.changes.push(what);
    this.live.changed(what);
  }

  complete(): void {
    this.end = "completed";
    this.processes.over = true;
    this.resolve(this.value);
  }
}

export type Actor = TurnActor | CallActor;

/** Who must be told when something begins; throws nothing, decides nothing. */
export interface Watch {
  readonly processes: ProcessWatch;
  turnBegan(actor: TurnActor): void;
  callBegan(actor: CallActor): void;
  /** A turn was told what became of its call. Undefined: it was refused. */
  callAnswered(actor: TurnActor, result: CallResult | undefined): void;
  /** A turn was given the text of a steer. */
  steerHeard(actor: TurnActor, text: string): void;
  /** Somebody was told what became of a question. Undefined: the wait ended without an answer. */
  askAnswered(actor: Actor, text: string, asked: QuestionResult | undefined): void;
  /** A turn was given the conversation, which it asked for when the log stood at `from`. */
  transcriptRead(actor: TurnActor, messages: readonly Message[], from: number): void;
  /** A turn has stopped its own run. */
  stopped(actor: TurnActor, note: string, phase: "asked" | "answered"): void;
  /** It tries again after its stop, and the event loop has not turned meanwhile. */
  starved(actor: Actor): void;
  /** Whether the next actor is one that does not stop when asked. */
  stubborn(): boolean;
  /** Numbers the calls that turns end with, in all lives. */
  callNumber(): number;
  /** How far this session's log is known to the engine. */
  known(actor: TurnActor): number;
}

/** How often it tries again. */
const TRIES_MAX = 8;

/** The agents and tools of one life of the engine. */
export class Actors {
  readonly turns: TurnActor[] = [];
  readonly calls: CallActor[] = [];
  readonly places = new Places();
  readonly #watch: Watch;
  readonly #life: number;
  readonly #metered: boolean;
  #questions = 0;
  over = false;

  constructor(watch: Watch, life: number, metered: boolean) {
    this.#watch = watch;
    this.#life = life;
    this.#metered = metered;
  }

  readonly agent: Agent = Object.assign(
    (turn: Turn) =>
      new Promise<TurnResult | undefined>((resolve, reject) => {
        if (this.over) return;
        const how = { stubborn: this.#watch.stubborn(), metered: this.#metered };
        const actor = new TurnActor(turn, how, resolve, reject);
        this.turns.push(actor);
        this.#watch.turnBegan(actor);
      }),
    { resume: (call: { readonly name: string; readonly input: Json }) => this.#request(planAgain(call)) },
  );

  /** A tool of the real agent loop. */
  executeTool(live: LiveCall): Promise<Json> {
    return this.#execute(live, undefined, planAgain(live));
  }

  /** Those that have not ended. */
  get going(): readonly Actor[] {
    return [...this.turns, ...this.calls].filter((actor) => actor.end === undefined);
  }

  /** A turn asks for its next call. Every turn asks for the same ones, also one that is asked again after a crash. */
  call(actor: TurnActor, traits: readonly Trait[]): void {
    actor.asked += 1;
    const input = actor.asked;
    actor.waitsFor += 1;
    const plan: Plan = { name: "tool", input, traits };
    const told = (result: CallResult | undefined): void => {
      actor.waitsFor -= 1;
      if (!this.over) this.#watch.callAnswered(actor, result);
    };
    const options = optionsOf(plan, this.places.for(plan));
    actor.turn
      .call(plan.name, input, (live) => this.#execute(live, actor, plan), options)
      .then(told, () => told(undefined));
  }

  /** A turn ends, and wants these calls done before the next one. */
  endWithCalls(actor: TurnActor, wanted: readonly (readonly Trait[])[]): void {
    actor.complete(
      "turn",
      wanted.map((traits) => this.#request(planOf(this.#watch.callNumber(), traits))),
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

  ask(actor: Actor, how: Omit<QuestionRequest, "text">): void {
    this.#questions += 1;
    const text = `q${this.#life}.${this.#questions}`;
    actor.asks += 1;
    const told = (asked: QuestionResult | undefined): void => {
      actor.asks -= 1;
      if (!this.over) this.#watch.askAnswered(actor, text, asked);
    };
    const ask = actor instanceof TurnActor ? actor.turn.ask : actor.live.ask;
    ask({ text, ...how }).then(told, () => told(undefined));
  }

  /** It was stopped and asks again, and again. Each refusal must let the event loop turn. */
  async tryAgain(actor: Actor): Promise<void> {
    if (actor.retries) return;
    actor.retries = true;
    let turned = false;
    const { clock, ask } = actor instanceof TurnActor ? actor.turn : actor.live;
    clock.immediate?.(() => {
      turned = true;
    });
    for (let tries = 1; tries <= TRIES_MAX && !this.over && actor.end === undefined; tries += 1) {
      await ask({ text: "again" }).catch(() => undefined);
      // The first may come with a turn of the loop that was asked for before.
      if (tries > 1 && !turned && !this.over) this.#watch.starved(actor);
    }
  }

  read(actor: TurnActor): void {
    const from = this.#watch.known(actor);
    this.#waitFor(actor, actor.turn.transcript(), (messages) => this.#watch.transcriptRead(actor, messages, from));
  }

  compact(actor: TurnActor): void {
    this.#waitFor(actor, actor.turn.compact(`all before ${actor.id}`), () => undefined);
  }

  stop(actor: TurnActor): void {
    const note = `stopped by ${actor.id}`;
    this.#waitFor(actor, actor.turn.stop(note), () => this.#watch.stopped(actor, note, "answered"));
    this.#watch.stopped(actor, note, "asked");
  }

  #waitFor<T>(actor: TurnActor, coming: Promise<T>, then: (value: T) => void): void {
    actor.pending += 1;
    coming.then(
      (value) => {
        actor.pending -= 1;
        if (!this.over) then(value);
      },
      // The store was in trouble, or the lane is another's by now.
      () => {
        actor.pending -= 1;
      },
    );
  }

  #request(plan: Plan): NonNullable<TurnResult["calls"]>[number] {
    return requestOf(plan, (live) => this.#execute(live, undefined, plan), this.places.for(plan));
  }

  #execute(live: LiveCall, turn: TurnActor | undefined, plan: Plan): Promise<Json> {
    return new Promise((resolve, reject) => {
      if (this.over) return;
      const how = { stubborn: this.#watch.stubborn(), watch: this.#watch.processes };
      const actor = new CallActor({ live, turn, plan, life: this.#life }, how, resolve, reject);
      this.calls.push(actor);
      this.#watch.callBegan(actor);
    });
  }
}

/** Whether it is told to stop at all. */
export const hears = (actor: Actor): boolean => !("hears" in actor) || actor.hears;
