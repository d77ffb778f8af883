// The model's part of a random schedule: what providers do, and what models ask for.
import { type Chooser, chance, pick, weighted } from "./chooser.ts";
import { TOOLS } from "./model-agents.ts";
import { ModelTurn } from "./model-turn.ts";
import type { ParkedRequest, Told } from "./parked-request.ts";
import type { Trait } from "./plan.ts";
import type { ScheduleOptions } from "./schedule-options.ts";
import type { Simulation } from "./simulation.ts";

/** The most that one answer asks for. */
const CALLS_MAX = 3;

export class RandomModel {
  readonly #simulation: Simulation;
  readonly #flavour: ScheduleOptions;
  readonly #chooser: Chooser;
  #calls = 0;

  constructor(simulation: Simulation, flavour: ScheduleOptions) {
    this.#simulation = simulation;
    this.#flavour = flavour;
    this.#chooser = simulation.chooser;
  }

  /** Requests that were let go of and do not know it. */
  get late(): readonly ParkedRequest[] {
    if (this.#flavour.model === undefined) return [];
    const { turns } = this.#simulation.life.actors;
    return turns.flatMap((turn) => (turn instanceof ModelTurn ? turn.requests.filter(({ late }) => late) : []));
  }

  /** It answers as if somebody still waited. */
  moveLate(request: ParkedRequest): void {
    this.#simulation.trace.note(`late ${request.phase}`);
    if (request.phase === "connecting" && chance(this.#chooser, 60)) request.connect();
    else if (request.phase === "connecting") request.fail({ retryable: true, status: 503 });
    else request.say("too late");
  }

  move(turn: ModelTurn): void {
    const { request } = turn;
    if (request === undefined) return;
    if (request.phase === "connecting") this.#connect(turn, request);
    else this.#stream(turn, request);
  }

  #connect(turn: ModelTurn, request: ParkedRequest): void {
    const { providerTrouble } = this.#flavour;
    const move = weighted(this.#chooser, [
      [8, "connect"],
      [8, "answer"],
      [providerTrouble ? 3 : 0, "busy"],
      [providerTrouble ? 1 : 0, "refuse"],
      [providerTrouble ? 1 : 0, "break"],
      [providerTrouble ? 3 : 0, "stall"],
    ] as const);
    this.#simulation.trace.note(`${move} for ${turn.id}`);
    if (move === "busy") request.fail({ retryable: true, status: 503, ...this.#after() });
    else if (move === "refuse") request.fail({ retryable: false, status: 400 });
    else if (move === "break") request.fail({ retryable: false });
    else if (move === "connect") request.connect();
    else if (move === "answer") {
      request.connect();
      this.#answer(turn, request);
    }
  }

  #stream(turn: ModelTurn, request: ParkedRequest): void {
    const { providerTrouble } = this.#flavour;
    const move = weighted(this.#chooser, [
      [5, "say"],
      [2, "think"],
      [request.calls < CALLS_MAX && request.purpose === "turn" ? 6 : 0, "call"],
      [8, "finish"],
      [1, "ping"],
      [providerTrouble ? 2 : 0, "break off"],
      [providerTrouble ? 1 : 0, "break for good"],
      [providerTrouble ? 1 : 0, "close"],
      [providerTrouble ? 2 : 0, "stall"],
    ] as const);
    this.#simulation.trace.note(`${move} for ${turn.id}`);
    if (move === "say") turn.say(request, `${turn.text.length}. `);
    else if (move === "think") request.say("Hm.", "reasoning");
    else if (move === "call") this.#call(request);
    else if (move === "finish") this.#finish(turn, request);
    else if (move === "ping") request.ping();
    else if (move === "break off") request.fail({ retryable: true });
    else if (move === "break for good") request.fail({ retryable: false });
    else if (move === "close") request.close();
  }

  /** All of it in one tick: some words, and some calls. */
  #answer(turn: ModelTurn, request: ParkedRequest): void {
    if (request.purpose === "compaction") turn.say(request, "What there was to say.");
    else {
      if (chance(this.#chooser, 60)) turn.say(request, "Well. ");
      const count = weighted(this.#chooser, [
        [2, 0],
        [4, 1],
        [3, 2],
        [2, 3],
      ] as const);
      for (let at = 0; at < count; at += 1) this.#call(request);
    }
    this.#finish(turn, request);
  }

  #finish(turn: ModelTurn, request: ParkedRequest): void {
    const odd = this.#flavour.providerTrouble && chance(this.#chooser, 12);
    const reason = odd
      ? pick(this.#chooser, ["length", "content-filter", "error"] as const)
      : request.calls > 0
        ? "tool-calls"
        : "stop";
    // A model without a word to say has said nothing worth a turn.
    if (request.text === "" && request.calls === 0) turn.say(request, "So. ");
    const lingers = chance(this.#chooser, 12) ? "lingers" : "closes";
    request.finish(reason, this.#told(request), lingers);
  }

  #told({ chars }: ParkedRequest): Told | undefined {
    return chance(this.#chooser, 75) ? { inputTokens: 10 + chars, outputTokens: 1 + chars } : undefined;
  }

  #call(request: ParkedRequest): void {
    this.#calls += 1;
    const number = this.#calls;
    const kind = weighted(this.#chooser, [
      [20, "tool"],
      [this.#flavour.providerTrouble ? 1 : 0, "unknown"],
      [this.#flavour.providerTrouble ? 1 : 0, "malformed"],
    ] as const);
    const name = kind === "unknown" ? "nothing" : pick(this.#chooser, Object.keys(TOOLS));
    const traits = [...this.#traits(), ...impliedBy(name)];
    const input = kind === "malformed" ? `{"number":${number}` : JSON.stringify({ number, traits });
    // Some providers use a name again, or one that others do not take.
    const id = weighted(this.#chooser, [
      [12, `c${number}`],
      [1, "c1"],
      [1, "not a name"],
    ]);
    request.call(id, name, input);
  }

  #traits(): readonly Trait[] {
    const own = this.#flavour.traits.filter((trait) => trait === "approval" || trait === "hasty");
    return own.filter(() => chance(this.#chooser, 45));
  }

  #after(): { readonly afterMs?: number } {
    return chance(this.#chooser, 30) ? { afterMs: pick(this.#chooser, [0, 200, 60_000]) } : {};
  }
}

/** What the engine knows of a tool, as traits of its calls. */
function impliedBy(name: string): readonly Trait[] {
  const { idempotent, interruptible, timeoutMs } = TOOLS[name] ?? {};
  return [
    ...(idempotent === true ? (["idempotent"] as const) : []),
    ...(interruptible === false ? (["deaf"] as const) : []),
    ...(timeoutMs === undefined ? [] : (["limited"] as const)),
  ];
}
