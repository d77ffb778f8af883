// One seeded schedule: the seed picks what kind of schedule it is, then every step of it. Not every schedule may do
// everything: leaving out most kinds of trouble each time lets the rest of them meet more often.
import type { CallId, RunId, SessionId } from "../src/core/ids.ts";
import type { Delivery } from "../src/core/prompt.ts";
import { type Actor, TurnActor } from "./actors.ts";
import { type Chooser, chance, pick, SeededChooser, weighted } from "./chooser.ts";
import type { Violation } from "./oracle.ts";
import type { PromptRecord } from "./records.ts";
import { heedRejections } from "./rejections.ts";
import { comeToRest } from "./rest.ts";
import type { Parked } from "./sim-store.ts";
import { Simulation, type SimulationOptions } from "./simulation.ts";

export interface ScheduleResult {
  readonly hash: string;
  readonly violations: readonly Violation[];
  readonly steps: number;
  readonly lines: readonly string[];
}

/** What may happen in a schedule. Printed with a violation. */
interface Flavour extends SimulationOptions {
  readonly steps: number;
  readonly deliveries: readonly Delivery[];
  readonly keys: boolean;
  readonly calls: boolean;
  /** Few clients and long turns: what takes time (recovery, several calls) gets it. */
  readonly calm: boolean;
  readonly queueChanges: boolean;
  readonly closes: boolean;
  readonly faults: boolean;
  readonly crashes: boolean;
  readonly shutdowns: boolean;
  readonly follows: boolean;
  readonly trims: boolean;
  /** How many of a hundred steps are the clients'. */
  readonly clientPercent: number;
}

export async function runSeed(seed: number, keep: "lines" | "hash" = "hash"): Promise<ScheduleResult> {
  const chooser = new SeededChooser(seed);
  const flavour = flavourOf(chooser);
  const simulation = new Simulation(flavour, chooser, keep);
  heedRejections(simulation);
  simulation.trace.note(JSON.stringify(flavour));
  await simulation.begin();
  let steps = 0;
  const schedule = new RandomSchedule(simulation, flavour);
  while (steps < flavour.steps && simulation.violations.length === 0) {
    await schedule.step();
    steps += 1;
  }
  if (simulation.violations.length === 0) await comeToRest(simulation);
  simulation.life.end();
  const { trace, violations } = simulation;
  return { hash: trace.hash, violations, steps, lines: trace.lines ?? [] };
}

function flavourOf(chooser: Chooser): Flavour {
  const sometimes = (percent: number): boolean => chance(chooser, percent);
  const calm = sometimes(20);
  const deliveries: Delivery[] = ["queue"];
  if (sometimes(45)) deliveries.push("steer");
  if (sometimes(35)) deliveries.push("interrupt");
  if (sometimes(25)) deliveries.push("reject");
  return {
    sessions: weighted(chooser, [
      [6, 1],
      [3, 2],
      [1, 3],
    ]),
    slots: weighted(chooser, [
      [1, 1],
      [1, 1024],
    ]),
    onCrash: sometimes(15) ? "lose" : "resume",
    stubbornPercent: sometimes(40) ? 40 : 0,
    steps: 8 + chooser.below(sometimes(30) ? 80 : 32),
    deliveries,
    keys: sometimes(35),
    calls: calm || sometimes(60),
    calm,
    queueChanges: sometimes(35),
    closes: sometimes(15),
    faults: sometimes(30),
    crashes: sometimes(calm ? 70 : 30),
    shutdowns: sometimes(15),
    follows: sometimes(25),
    trims: sometimes(30),
    clientPercent: calm ? 6 : 15 + chooser.below(35),
  };
}

class RandomSchedule {
  readonly #simulation: Simulation;
  readonly #flavour: Flavour;
  readonly #chooser: Chooser;
  #text = 0;

  constructor(simulation: Simulation, flavour: Flavour) {
    this.#simulation = simulation;
    this.#flavour = flavour;
    this.#chooser = simulation.chooser;
  }

  async step(): Promise<void> {
    const simulation = this.#simulation;
    const { life } = simulation;
    if (life.report !== undefined) return simulation.restartAfterClose();
    const open = life.phase === "open" || life.phase === "closing";
    const { crashes, shutdowns, clientPercent } = this.#flavour;
    const kind = weighted(this.#chooser, [
      [open ? clientPercent : 0, "client"],
      [life.store.parked.length > 0 ? 40 : 0, "store"],
      [life.actors.going.length > 0 ? 22 : 0, "agent"],
      [3, "clock"],
      [simulation.clients.followers.length > 0 ? 8 : 0, "follower"],
      [crashes ? 3 : 0, "crash"],
      [shutdowns && life.phase === "open" ? 2 : 0, "shutdown"],
    ] as const);
    if (kind === "client") this.#clients();
    else if (kind === "store") this.#store(pick(this.#chooser, life.store.parked));
    else if (kind === "agent") this.#agent(pick(this.#chooser, life.actors.going));
    else if (kind === "follower") this.#pull();
    else if (kind === "clock") simulation.tick();
    else if (kind === "crash") {
      await simulation.crash(
        weighted(this.#chooser, [
          [4, "released"],
          [2, "expired"],
          [1, "held"],
        ] as const),
      );
    } else {
      const mode = chance(this.#chooser, 75) ? "park" : "cancel";
      simulation.trace.note(`shut down: ${mode}`);
      void life.close(mode, 10_000);
    }
    await simulation.drain();
  }

  #store(parked: Parked): void {
    const simulation = this.#simulation;
    // A worker that cannot even look around does not start; that is no schedule.
    const mayFail = parked.phase === "waiting" && parked.verb !== "close" && simulation.life.phase !== "starting";
    if (this.#flavour.faults && mayFail && chance(this.#chooser, this.#flavour.calm ? 25 : 12)) {
      const fault = weighted(this.#chooser, [
        [2, "store_full"],
        [1, "store_locked"],
        [2, "unavailable"],
        [4, "lost"],
      ] as const);
      if (fault === "lost") simulation.loseAnswer(parked);
      else simulation.fail(parked, parked.verb === "append" ? fault : "unavailable");
      return;
    }
    if (parked.phase === "waiting" && chance(this.#chooser, 35)) simulation.apply(parked);
    else simulation.answer(parked);
  }

  #agent(actor: Actor): void {
    const simulation = this.#simulation;
    const { actors } = simulation.life;
    // Somebody who does not heed a cancel goes on as if nothing had been said; the others mostly end.
    const heeds = actor.aborted && !actor.stubborn && chance(this.#chooser, 80);
    if (heeds) {
      simulation.trace.note(`heed ${actor.id}`);
      actor.fail();
      return;
    }
    if (actor.aborted && actor.stubborn && chance(this.#chooser, 70)) return;
    if (!(actor instanceof TurnActor)) {
      const well = chance(this.#chooser, 75);
      simulation.trace.note(`${well ? "complete" : "fail"} ${actor.id}`);
      if (well) actor.complete();
      else actor.fail();
      return;
    }
    const { calm } = this.#flavour;
    const move = weighted(this.#chooser, [
      [3, "emit"],
      [this.#flavour.calls && actor.waitsFor < 3 ? 8 : 0, "call"],
      [2, "take"],
      [calm ? 1 : 3, "again"],
      [calm ? 1 : 5, "complete"],
      [calm ? 0 : 2, "fail"],
    ] as const);
    simulation.trace.note(`${move} ${actor.id}`);
    if (move === "emit") actor.emit(`${actor.text.length}.`);
    else if (move === "call") actors.call(actor, { idempotent: false });
    else if (move === "take") actors.takeSteers(actor);
    else if (move === "fail") actor.fail();
    else actor.complete(move === "again" ? "turn" : "end");
  }

  /** One or more requests in the same tick. */
  #clients(): void {
    const count = weighted(this.#chooser, [
      [6, 1],
      [3, 2],
      [1, 3],
    ] as const);
    const session = pick(this.#chooser, this.#simulation.sessions);
    for (let index = 0; index < count; index += 1) this.#client(session);
  }

  #client(session: SessionId): void {
    const { clients } = this.#simulation;
    const { keys, queueChanges, closes, follows, trims, calls } = this.#flavour;
    const known = clients.prompts.filter((prompt) => prompt.session === session);
    const some = known.length > 0;
    const kind = weighted(this.#chooser, [
      [30, "prompt"],
      [14, "cancel"],
      [some ? 12 : 0, "cancel-run"],
      [some && keys ? 6 : 0, "cancel-key"],
      [calls ? 8 : 0, "cancel-call"],
      [some && queueChanges ? 18 : 0, "change"],
      [some ? 8 : 0, "wait"],
      [closes ? 2 : 0, "close"],
      [follows ? 8 : 0, "follow"],
      [trims && follows ? 4 : 0, "trim"],
    ] as const);
    const run = (): RunId => pick(this.#chooser, known.slice(-4)).runId;
    if (kind === "prompt") this.#prompt(session);
    else if (kind === "cancel") clients.cancelSession(session);
    else if (kind === "cancel-run") clients.cancelRun(session, run());
    else if (kind === "cancel-key") clients.cancelKey(session, this.#key());
    else if (kind === "cancel-call") this.#cancelCall(session);
    else if (kind === "change") this.#change(session, run());
    else if (kind === "wait") this.#wait(session, known);
    else if (kind === "close") clients.close(session);
    else if (kind === "follow") this.#follow(session);
    else this.#trim(session);
  }

  #prompt(session: SessionId): void {
    const key = this.#flavour.keys && chance(this.#chooser, 60) ? this.#key() : undefined;
    // Under a key the same text comes again, and now and then another one.
    this.#text += 1;
    const text = key === undefined ? `p${this.#text}` : chance(this.#chooser, 85) ? `under ${key}` : `p${this.#text}`;
    const delivery = key === undefined ? pick(this.#chooser, this.#flavour.deliveries) : "queue";
    this.#simulation.clients.prompt(session, { text, delivery, key });
  }

  #cancelCall(session: SessionId): void {
    const { facts, clients } = this.#simulation;
    const calls = [...facts.works.values()].filter(
      (work) => work.id.startsWith("call_") && facts.runs.get(work.runId)?.session === session,
    );
    if (calls.length > 0) clients.cancelCall(session, pick(this.#chooser, calls.slice(-3)).id as CallId);
  }

  #change(session: SessionId, runId: RunId): void {
    const { clients } = this.#simulation;
    const verb = weighted(this.#chooser, [
      [3, "edit"],
      [2, "move"],
      [2, "withdraw"],
      [3, "steer"],
    ] as const);
    const others = clients.prompts.filter((prompt) => prompt.session === session && prompt.runId !== runId);
    const before = others.length > 0 && chance(this.#chooser, 40) ? pick(this.#chooser, others).runId : undefined;
    const to = before === undefined ? pick(this.#chooser, ["front", "back"] as const) : { before };
    clients.change(session, runId, { verb, to });
  }

  /** Whoever waits has been told that there is something to wait for; or asks for something that is long gone. */
  #wait(session: SessionId, known: readonly PromptRecord[]): void {
    const { clients, life } = this.#simulation;
    const told = known.filter((one) => (one.receipt ?? one.refused) !== undefined || one.life !== life.number);
    if (told.length > 0) clients.wait(session, pick(this.#chooser, told.slice(-4)).runId);
  }

  #follow(session: SessionId): void {
    const { clients, facts, life } = this.#simulation;
    if (clients.followers.filter((one) => one.life === life.number).length >= 3) return;
    clients.follow(session, this.#chooser.below(facts.head(session) + 1));
  }

  #pull(): void {
    const { clients, life } = this.#simulation;
    const ready = clients.followers.filter((one) => one.life === life.number && !one.waiting && !one.ended);
    if (ready.length > 0) clients.pull(pick(this.#chooser, ready));
  }

  /** Retention: what belongs to no run without an outcome, and what the engine has seen, may go. */
  #trim(session: SessionId): void {
    const { facts, disk, life, trace } = this.#simulation;
    const seen = life.engine.lanes.peek(session)?.durable.head ?? 0;
    const first = facts.open(session)[0]?.acceptedAt ?? facts.head(session);
    const to = Math.min(seen, first - 1);
    if (to <= (disk.trimmedTo.get(session) ?? 0)) return;
    disk.trimmedTo.set(session, to);
    trace.note(`trim ${session} to ${to}`);
  }

  #key(): string {
    return pick(this.#chooser, ["k1", "k2"]);
  }
}
