// The agents' and the host's part of a random schedule.
import { type Actor, type CallActor, TurnActor } from "./actors.ts";
import { type Chooser, chance, weighted } from "./chooser.ts";
import { ModelTurn } from "./model-turn.ts";
import { HASTY_MS, type Trait } from "./plan.ts";
import { RandomModel } from "./random-model.ts";
import type { RandomProcesses } from "./random-processes.ts";
import type { ScheduleOptions } from "./schedule-options.ts";
import type { HookActor } from "./scripted-hooks.ts";
import type { Simulation } from "./simulation.ts";

export class RandomAgent {
  readonly #simulation: Simulation;
  readonly #flavour: ScheduleOptions;
  readonly #chooser: Chooser;
  readonly #processes: RandomProcesses;
  readonly #model: RandomModel;
  /** Somebody stops a run in the middle of what happens now. */
  stopSoon: (actor: Actor) => void = () => {};

  constructor(simulation: Simulation, flavour: ScheduleOptions, processes: RandomProcesses) {
    this.#simulation = simulation;
    this.#flavour = flavour;
    this.#processes = processes;
    this.#chooser = simulation.chooser;
    this.#model = new RandomModel(simulation, flavour);
  }

  get canMove(): boolean {
    const { actors, host } = this.#simulation.life;
    return actors.going.some(({ movable }) => movable) || host.waiting.length > 0 || this.#model.late.length > 0;
  }

  move(): void {
    const { actors, host } = this.#simulation.life;
    const hooks = host.waiting;
    const going = actors.going.filter(({ movable }) => movable);
    const { late } = this.#model;
    const at = this.#chooser.below(going.length + hooks.length + late.length);
    const actor = going[at];
    const hook = hooks[at - going.length];
    const request = late[at - going.length - hooks.length];
    if (actor instanceof ModelTurn) this.#model.move(actor);
    else if (actor !== undefined) this.#act(actor);
    if (actor !== undefined && this.#flavour.hurry && chance(this.#chooser, 8)) this.stopSoon(actor);
    else if (hook !== undefined) this.#say(hook);
    else if (request !== undefined) this.#model.moveLate(request);
  }

  /** A hook that is never moved hangs, until its time is up. */
  #say(hook: HookActor): void {
    const said = weighted(this.#chooser, [
      [5, "nothing"],
      [2, "replace"],
      [1, "approve"],
      [1, "deny"],
      [1, "throw"],
      [1, "hang"],
    ] as const);
    if (said !== "hang") this.#simulation.life.host.say(hook, said);
  }

  #act(actor: Actor): void {
    const { trace } = this.#simulation;
    // Somebody who does not heed a cancel goes on as if nothing had been said; the others mostly end.
    const heeds = actor.aborted && !actor.stubborn && chance(this.#chooser, 80);
    if (heeds) {
      trace.note(`heed ${actor.id}`);
      actor.heed();
      return;
    }
    if (actor.aborted && actor.stubborn && chance(this.#chooser, 70)) {
      void this.#simulation.life.actors.tryAgain(actor);
      return;
    }
    // Whoever has asked something mostly waits for the answer.
    if (actor.asks > 0 && chance(this.#chooser, 70)) return;
    const waits = !(actor instanceof TurnActor) && actor.processes.pending > 0;
    if (waits && chance(this.#chooser, this.#flavour.patient ? 90 : 40)) return;
    if (actor instanceof TurnActor) this.#turn(actor);
    else this.#call(actor);
  }

  #call(actor: CallActor): void {
    if (this.#flavour.patient && chance(this.#chooser, 85)) {
      this.#processes.patiently(actor);
      return;
    }
    const move = weighted(this.#chooser, [
      [6, "complete"],
      [2, "fail"],
      [2, "put aside"],
      [1, "change"],
      [this.#flavour.asks && actor.asks < 2 ? 4 : 0, "ask"],
      [this.#processes.isTempting(actor) ? 22 : 0, "process"],
    ] as const);
    if (move === "process") {
      this.#processes.byCall(actor);
      return;
    }
    this.#simulation.trace.note(`${move} ${actor.id}`);
    if (move === "complete") actor.complete();
    else if (move === "fail") actor.fail();
    else if (move === "put aside") actor.putAside();
    else if (move === "change") actor.change();
    else this.#ask(actor);
  }

  #turn(actor: TurnActor): void {
    const { trace, life } = this.#simulation;
    const { calm, deep, lives, calls, ends, asks, reads, stops, processes, patient } = this.#flavour;
    // Whoever waits for a call that waits for a process has time.
    if (patient && actor.waitsFor > 0 && chance(this.#chooser, 70)) return;
    const move = weighted(this.#chooser, [
      [3, "emit"],
      [calls && actor.waitsFor < 3 ? (deep ? 4 : patient ? 16 : 8) : 0, "call"],
      [processes ? 4 : 2, "take"],
      [calm || deep || patient ? 1 : 3, "again"],
      [calm || deep || patient ? 1 : 5, "complete"],
      [calm || patient ? 0 : deep ? 1 : 2, "fail"],
      [ends ? (deep ? 10 : 5) : 0, "end with calls"],
      [asks && actor.asks < 2 ? 3 : 0, "ask"],
      [reads && actor.pending < 2 ? 5 : 0, "read"],
      [reads ? 1 : 0, "compact"],
      [stops ? 2 : 0, "stop"],
    ] as const);
    trace.note(`${move} ${actor.id}`);
    if (move === "emit") actor.emit(`${actor.text.length}.`);
    else if (move === "call")
      life.actors.call(actor, lives ? ["idempotent"] : chance(this.#chooser, 40) ? this.#traits() : []);
    else if (move === "take") life.actors.takeSteers(actor);
    else if (move === "fail") actor.fail();
    else if (move === "end with calls") life.actors.endWithCalls(actor, this.#wanted());
    else if (move === "ask") this.#ask(actor);
    else if (move === "read") life.actors.read(actor);
    else if (move === "compact") life.actors.compact(actor);
    else if (move === "stop") life.actors.stop(actor);
    else actor.complete(move === "again" ? "turn" : "end");
  }

  #wanted(): readonly (readonly Trait[])[] {
    const count = weighted(this.#chooser, [
      [3, 1],
      [3, 2],
      [2, 3],
    ] as const);
    return Array.from({ length: count }, () => this.#traits());
  }

  #traits(): readonly Trait[] {
    return this.#flavour.traits.filter(() => chance(this.#chooser, 45));
  }

  #ask(actor: Actor): void {
    const options = chance(this.#chooser, 40) ? { options: ["yes", "no"], only: true } : {};
    const deadline = chance(this.#chooser, 40) ? { deadlineMs: HASTY_MS } : {};
    this.#simulation.life.actors.ask(actor, { ...options, ...deadline });
  }
}
