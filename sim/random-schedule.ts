// One seeded schedule: the seed picks what kind of schedule it is, then every step of it.
import { type Chooser, chance, pick, SeededChooser, weighted } from "./chooser.ts";
import { RandomAgent } from "./random-agent.ts";
import { RandomClients } from "./random-clients.ts";
import { RandomProcesses } from "./random-processes.ts";
import { onRejections } from "./rejections.ts";
import { comeToRest } from "./rest.ts";
import { type Focus, flavourOf, type ScheduleOptions } from "./schedule-options.ts";
import type { Parked } from "./sim-store.ts";
import { Simulation } from "./simulation.ts";
import { checkStatus } from "./status.ts";
import { StoreTrouble, type StoreTroubleTally } from "./store-trouble.ts";
import type { Violation } from "./violation.ts";
import { checkPlaces } from "./works.ts";

export interface ScheduleResult {
  readonly hash: string;
  readonly violations: readonly Violation[];
  readonly steps: number;
  readonly lines: readonly string[];
  /** What the seed has picked, in full. */
  readonly options: ScheduleOptions;
  readonly processes: ProcessTally;
  readonly storeTrouble: StoreTroubleTally;
}

/** What became of processes in a schedule, so that whoever counts on it can see that something did. */
export interface ProcessTally {
  readonly completed: number;
  readonly cancelled: number;
  readonly lost: number;
  /** Results that a turn was told, and those that a call has told. */
  readonly toldByTurns: number;
  readonly toldByCalls: number;
  readonly restarts: number;
  /** Deaths that were not verified at once: those that were verified later, and those that were not by then. */
  readonly verifiedLate: number;
  readonly unverified: number;
}

export async function runSeed(
  seed: number,
  keep: "lines" | "hash" = "hash",
  focus: Focus = undefined,
): Promise<ScheduleResult> {
  const chooser = new SeededChooser(seed);
  const flavour = flavourOf(chooser, focus);
  const simulation = new Simulation(flavour, chooser, keep);
  onRejections(simulation);
  simulation.trace.note(JSON.stringify(flavour));
  await simulation.begin();
  let steps = 0;
  const storeTrouble = new StoreTrouble(simulation, flavour.storeTrouble);
  const schedule = new RandomSchedule(simulation, flavour, storeTrouble);
  while (steps < flavour.steps && simulation.violations.length === 0) {
    await schedule.step();
    steps += 1;
  }
  storeTrouble.end();
  if (simulation.violations.length === 0) await comeToRest(simulation);
  simulation.life.end();
  const { trace, violations } = simulation;
  return {
    hash: trace.hash,
    violations,
    steps,
    lines: trace.lines ?? [],
    options: flavour,
    processes: tally(simulation),
    storeTrouble: storeTrouble.tally,
  };
}

function tally({ facts, lives, world }: Simulation): ProcessTally {
  const all = [...facts.processes.all.values()];
  const dying = [...world.children.values()].flatMap(({ child }) => (child.dyingSince === undefined ? [] : [child]));
  const ended = (kind: string): number => all.filter(({ settled }) => settled?.outcome.kind === kind).length;
  return {
    completed: ended("completed"),
    cancelled: ended("cancelled"),
    lost: ended("lost"),
    toldByTurns: all.filter(({ taken }) => taken.length > 0).length,
    toldByCalls: all.filter(({ added, heard }) => added.length > 0 && heard.some(({ early }) => early)).length,
    restarts: lives - 1,
    verifiedLate: dying.filter(({ end }) => end !== undefined).length,
    unverified: dying.filter(({ end }) => end === undefined).length,
  };
}

/** How late timers are, in a process that is busy or was stopped for a moment. */
const LATE_MS = [0, 0, 20, 700, 4_000];
/** A day is the most that a wall clock is off by, either way. */
const JUMPS_MS = [-86_400_000, -3_600_000, -1, 1_000, 86_400_000];
/** A blink, less than a lease, more than one, a night. */
const SLEEPS_MS = [300, 5_000, 20_000, 36_000_000];

class RandomSchedule {
  readonly #simulation: Simulation;
  readonly #flavour: ScheduleOptions;
  readonly #chooser: Chooser;
  readonly #processes: RandomProcesses;
  readonly #agent: RandomAgent;
  readonly #clients: RandomClients;
  readonly #storeTrouble: StoreTrouble;

  constructor(simulation: Simulation, flavour: ScheduleOptions, storeTrouble: StoreTrouble) {
    this.#simulation = simulation;
    this.#flavour = flavour;
    this.#chooser = simulation.chooser;
    this.#storeTrouble = storeTrouble;
    this.#processes = new RandomProcesses(simulation, flavour);
    this.#agent = new RandomAgent(simulation, flavour, this.#processes);
    this.#clients = new RandomClients(simulation, flavour, this.#processes);
    this.#agent.stopSoon = ({ runId }) => {
      const session = simulation.facts.runs.get(runId)?.session;
      if (session !== undefined) this.#clients.stopSoon(session, runId);
    };
    if (flavour.hurry) simulation.reflex = (actor) => this.#clients.reflex(actor);
  }

  async step(): Promise<void> {
    const simulation = this.#simulation;
    const { life } = simulation;
    this.#storeTrouble.step();
    if (life.report !== undefined) return simulation.restartAfterClose();
    const kind = this.#kind();
    // Time does not pass within a tick.
    if (kind === "clock" || kind === "jump" || kind === "sleep" || kind === "crash" || kind === "shutdown")
      await simulation.drain();
    if (kind === "client") this.#clients.move();
    else if (kind === "store") {
      const parked = pick(this.#chooser, life.store.parked);
      const taken = this.#storeTrouble.take(parked);
      if (taken === undefined) this.#store(parked);
      else await taken;
    } else if (kind === "agent") this.#agent.move();
    else if (kind === "child") this.#processes.move();
    else if (kind === "follower") this.#pull();
    else if (kind === "clock") simulation.tick(this.#flavour.slowTimers ? pick(this.#chooser, LATE_MS) : 0);
    else if (kind === "jump") await simulation.jump(pick(this.#chooser, JUMPS_MS));
    else if (kind === "sleep") {
      simulation.sleep(pick(this.#chooser, SLEEPS_MS), chance(this.#chooser, 40) ? "taken" : "alone");
    } else if (kind === "crash") {
      await simulation.crash(
        weighted(this.#chooser, [
          [4, "released"],
          [2, "expired"],
          [1, "held"],
        ] as const),
        this.#flavour.survive && chance(this.#chooser, 50) ? "survive" : "die",
      );
    } else {
      const mode = chance(this.#chooser, 75) ? "park" : "cancel";
      simulation.trace.note(`shut down: ${mode}`);
      void life.close(mode, 10_000);
    }
    const same =
      this.#flavour.hurry && (kind === "client" || kind === "agent" || kind === "child") && chance(this.#chooser, 30);
    if (same) return;
    await simulation.drain();
    // Whoever has waited long enough returns with what it has asked for still on its way.
    if (kind === "clock") this.#processes.loseTemper();
    checkPlaces(simulation);
    checkStatus(simulation);
  }

  #kind(): "jump" | "sleep" | "child" | "client" | "store" | "agent" | "clock" | "follower" | "crash" | "shutdown" {
    const { life, clients } = this.#simulation;
    const { crashes, shutdowns, clientPercent, deep, patient, jumps, sleeps, deathVerified } = this.#flavour;
    const open = life.phase === "open" || life.phase === "closing";
    return weighted(this.#chooser, [
      [open ? clientPercent : 0, "client"],
      [life.store.parked.length > 0 ? 40 : 0, "store"],
      [this.#agent.canMove ? (deep || patient ? 40 : 22) : 0, "agent"],
      [this.#processes.canMove ? (deathVerified === undefined ? 16 : 3) : 0, "child"],
      [this.#processes.canMove || this.#flavour.providerTrouble ? 9 : 3, "clock"],
      [clients.followers.length > 0 ? 8 : 0, "follower"],
      [jumps ? 4 : 0, "jump"],
      [sleeps && life.phase === "open" ? 2 : 0, "sleep"],
      [crashes ? (patient ? 1 : deep ? 2 : 3) : 0, "crash"],
      [shutdowns && life.phase === "open" ? 2 : 0, "shutdown"],
    ] as const);
  }

  #store(parked: Parked): void {
    const simulation = this.#simulation;
    // A worker that cannot even look around does not start; that is no schedule.
    const mayFail = parked.phase === "waiting" && parked.verb !== "close" && simulation.life.phase !== "starting";
    if (
      this.#flavour.faults &&
      mayFail &&
      chance(this.#chooser, this.#flavour.calm ? 25 : this.#flavour.processes ? 22 : 12)
    ) {
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

  #pull(): void {
    const { clients, life } = this.#simulation;
    const ready = clients.followers.filter((one) => one.life === life.number && !one.waiting && !one.ended);
    if (ready.length > 0) clients.pull(pick(this.#chooser, ready));
  }
}
