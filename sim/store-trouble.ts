// Lasting trouble of the simulated store: for a number of steps it refuses, does not answer, or commits slowly or late.
// Decides what becomes of each call that the scheduler would move meanwhile.
//
// Invariants
// 1. Draws no choices, so a schedule without trouble is the same whether this exists or not.
// 2. Only calls that were made during the trouble meet it. A worker that is starting does not: one that cannot even
//    look around does not start, and then there is no schedule.
import type { SessionId } from "../src/core/model/ids.ts";
import type { Parked, StoreTroubleOptions, Verb } from "./sim-store.ts";
import type { Simulation } from "./simulation.ts";

/** How many calls the trouble has met. */
export interface StoreTroubleTally {
  readonly refused: number;
  readonly silenced: number;
  readonly slowed: number;
}

/** Appends of one session that may follow each other without a pause, each after the refusal of the one before it. */
const RESENDS_MAX = 8;

/** Instants of one second of the clock at which a session may send to a store that refuses. The pauses double. */
const SENDS_PER_SECOND_MAX = 6;

const WRITES: ReadonlySet<Verb> = new Set(["append", "claim", "renew", "release"]);

export class StoreTrouble {
  readonly tally = { refused: 0, silenced: 0, slowed: 0 };
  readonly #simulation: Simulation;
  readonly #options: StoreTroubleOptions | undefined;
  /** Calls that were made before it began. */
  #earlier: ReadonlySet<Parked> = new Set();
  /** When the append of a session that is late lands. */
  readonly #landsAt = new Map<string, number>();
  /** When each session of this life was refused an append, by the second. */
  readonly #refusedAt = new Map<SessionId, readonly number[]>();
  #life = 0;
  #steps = 0;
  #on = false;

  constructor(simulation: Simulation, options: StoreTroubleOptions | undefined) {
    this.#simulation = simulation;
    this.#options = options;
  }

  /** Called before each step of the schedule: the trouble begins and ends here. */
  step(): void {
    if (this.#options === undefined) return;
    const { afterSteps, steps } = this.#options;
    if (this.#steps === afterSteps) this.#begin();
    if (this.#steps === afterSteps + steps) this.end();
    this.#steps += 1;
  }

  /** It is over, at the latest when the schedule is. Calls that met a silent store are never answered. */
  end(): void {
    if (!this.#on) return;
    if (this.#options?.kind === "silent") {
      for (const parked of [...this.#simulation.life.store.parked]) void this.take(parked);
    }
    this.#on = false;
    this.#simulation.trace.note("the store is well again");
  }

  /** What becomes of this call in the trouble; undefined: it does not meet it. */
  take(parked: Parked): Promise<void> | undefined {
    const options = this.#options;
    if (options === undefined || !(this.#on || this.#landsIn(parked) > 0)) return undefined;
    if (!this.#meets(parked, options)) return undefined;
    switch (options.kind) {
      case "refusing":
        return this.#refuse(parked, options);
      case "silent":
        this.tally.silenced += 1;
        this.#simulation.silence(parked, options.applied);
        return Promise.resolve();
      case "slow":
        this.tally.slowed += 1;
        this.#simulation.slowDown(parked, options);
        return Promise.resolve();
      case "late":
        this.#late(parked, options);
        return Promise.resolve();
    }
  }

  #late(parked: Parked, { commitMs, code }: StoreTroubleOptions & { kind: "late" }): void {
    const waitMs = this.#landsIn(parked);
    if (waitMs > 0) {
      this.tally.refused += 1;
      this.#simulation.refuseLater(parked, code, waitMs + 100);
      return;
    }
    this.tally.slowed += 1;
    this.#landsAt.set(parked.about, this.#simulation.clock.elapsed() + commitMs);
    this.#simulation.slowDown(parked, { commitMs, applied: "at-end" });
  }

  /** When the late append of its session lands, from now on; not above 0: there is none. */
  #landsIn({ about }: Parked): number {
    return (this.#landsAt.get(about) ?? 0) - this.#simulation.clock.elapsed();
  }

  #begin(): void {
    this.#on = true;
    this.#earlier = new Set(this.#simulation.life.store.parked);
    this.#simulation.trace.note(`the store is ${this.#options?.kind}`);
  }

  #meets(parked: Parked, options: StoreTroubleOptions): boolean {
    const { verb, phase } = parked;
    if (phase !== "waiting" || verb === "close") return false;
    if (this.#earlier.has(parked) || this.#simulation.life.phase === "starting") return false;
    if (options.kind === "slow" || options.kind === "late") return verb === "append";
    return options.kind === "silent" || WRITES.has(verb) || options.also === "reads";
  }

  /**
   * Refuses it, and what its session sends at once because of that: a store that refuses promptly must not be asked
   * again without a pause.
   */
  async #refuse(parked: Parked, options: StoreTroubleOptions & { kind: "refusing" }): Promise<void> {
    const simulation = this.#simulation;
    let next: Parked | undefined = parked;
    for (let sent = 1; next !== undefined; sent += 1) {
      this.tally.refused += 1;
      simulation.fail(next, options.code);
      if (parked.verb !== "append") return;
      if (sent === 1) this.#count(parked.about as SessionId);
      await simulation.drain();
      next = this.#append(parked.about as SessionId, options);
      if (sent <= RESENDS_MAX || next === undefined) continue;
      simulation.violate("G28", `${parked.about} sent ${sent} appends without a pause to a store that refuses.`);
      return;
    }
  }

  /** A new life knows nothing of the pauses of the one before it. */
  #count(session: SessionId): void {
    const { life, clock } = this.#simulation;
    if (life.number !== this.#life) this.#refusedAt.clear();
    this.#life = life.number;
    const now = clock.elapsed();
    const last = [...(this.#refusedAt.get(session) ?? []), now].filter((at) => now - at < 1_000);
    this.#refusedAt.set(session, last);
    const sent = new Set(last).size;
    if (sent <= SENDS_PER_SECOND_MAX) return;
    this.#simulation.violate("G33", `${session} sent ${sent} times in a second to a store that refuses.`);
  }

  /** Not one that was sent before the trouble, or has been written: it cannot be refused. */
  #append(session: SessionId, options: StoreTroubleOptions): Parked | undefined {
    const { parked } = this.#simulation.life.store;
    return parked.find((one) => one.verb === "append" && one.about === session && this.#meets(one, options));
  }
}
