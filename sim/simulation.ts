// One simulated house: a disk, a clock, the real engine in one life after another, clients, agents, and those who
// watch them. It does nothing by itself; a schedule moves it, one step at a time.
import type { ControlCode } from "../src/core/errors.ts";
import { STORE_WAIT_MS } from "../src/core/limits.ts";
import type { SessionId } from "../src/core/model/ids.ts";
import type { Ids } from "../src/ports/clock.ts";
import type { Notice } from "../src/ports/hooks.ts";
import { MemoryStore } from "../src/store/memory/memory-store.ts";
import { ManualClock, settled } from "../src/testing/manual-clock.ts";
import type { Actor } from "./actors.ts";
import { type Chooser, chance } from "./chooser.ts";
import { Clients } from "./clients.ts";
import { Facts } from "./facts.ts";
import { Life } from "./life.ts";
import { LiveStops } from "./live-stops.ts";
import type { ModelOptions } from "./model-agents.ts";
import { ModelObserver } from "./model-observer.ts";
import { ProcessObserver } from "./process-observer.ts";
import { ProcessWorld } from "./process-world.ts";
import type { Disk, Parked, TroubleKind } from "./sim-store.ts";
import { checkStops, processStopsOf, workStopsOf } from "./stops.ts";
import { TimeObserver } from "./time-observer.ts";
import { Trace } from "./trace.ts";
import type { Violation } from "./violation.ts";
import { Witness } from "./witness.ts";
import { checkWorks } from "./works.ts";

export interface SimulationOptions {
  readonly sessions: number;
  /** Runs that may be live at once, across sessions. */
  readonly slots: number;
  readonly onCrash: "resume" | "lose";
  /** How many of a hundred turns and calls do not stop when asked. */
  readonly stubbornPercent: number;
  /** Whether the host has hooks. */
  readonly hooks: boolean;
  /** Whether agents count what they cost. */
  readonly metered: boolean;
  /** Whether the store fails, loses answers or keeps callers waiting for too long. */
  readonly faults?: boolean;
  readonly runLimitMs: number | undefined;
  /** Whether calls and people can start processes. */
  readonly processes: boolean;
  /** If agents are the real loop over a model. */
  readonly model: ModelOptions | undefined;
  /** How much of a log the store gives at once, if less than it is asked for. */
  readonly pageMax: number | undefined;
}

/** What becomes of a vanished worker's leases before the next one starts. */
export type Takeover = "released" | "expired" | "held";

const LEASE_MS = 10_001;
const OTHER = "wrk_other";
/** Two thirds of a lease, which is when its holder lets go. */
const HOLD_MS = 6_666;

export class Simulation {
  readonly chooser: Chooser;
  readonly clock = new ManualClock(1_000_000);
  readonly facts = new Facts();
  readonly trace: Trace;
  readonly disk: Disk;
  readonly sessions: SessionId[] = [];
  readonly clients: Clients;
  readonly stops: LiveStops;
  readonly witness: Witness;
  readonly world = new ProcessWorld();
  readonly processes: ProcessObserver;
  readonly models: ModelObserver;
  readonly times: TimeObserver;
  readonly violations: Violation[] = [];
  life: Life;
  lives = 1;
  /** Until then a caller may wait for a store that does not answer. */
  silentUntil = 0;
  /** Faults of the store, in all lives. */
  troubles = 0;
  /** What somebody does in the very moment in which a piece of work begins. */
  reflex: (actor: Actor) => void = () => {};
  readonly #options: SimulationOptions;
  readonly #ids = simIds();

  constructor(options: SimulationOptions, chooser: Chooser, keep: "lines" | "hash" = "hash") {
    this.#options = options;
    this.chooser = chooser;
    this.trace = new Trace(keep);
    const store = new MemoryStore({ clock: this.clock });
    const life = (): Life => this.life;
    const violate = (rule: string, message: string): void => this.violate(rule, message);
    this.disk = {
      store,
      facts: this.facts,
      trace: this.trace,
      trimmedTo: new Map(),
      pageMax: options.pageMax,
      violate,
      elapsed: () => this.clock.elapsed(),
      recorded: (session, first, events) => {
        this.processes.recorded(session, first, events);
        this.times.recorded(events);
      },
    };
    const { world } = this;
    const stoppedBefore = processStopsOf(this);
    this.processes = new ProcessObserver({ facts: this.facts, world, life, violate, stoppedBefore });
    world.born = (child) => this.processes.born(child);
    this.stops = new LiveStops({ processes: this.processes, life, violate });
    const { facts, trace, stops } = this;
    const { trimmedTo } = this.disk;
    this.clients = new Clients({ facts, trace, stops, trimmedTo, life, violate });
    const stubborn = (): boolean => options.stubbornPercent > 0 && chance(chooser, options.stubbornPercent);
    const began = (actor: Actor): void => this.reflex(actor);
    const { processes } = this;
    const elapsed = (): number => this.clock.elapsed();
    const note = (line: string): void => trace.note(line);
    const { model } = options;
    this.models = new ModelObserver({ facts, stops, options: model, life, elapsed, note, violate });
    const { models } = this;
    const { runLimitMs } = options;
    this.times = new TimeObserver({ facts, life, elapsed, runLimitMs, violate });
    this.witness = new Witness({
      ...{ facts, processes, models, trace, stops, life, violate, stubborn, began, stoppedBefore: workStopsOf(this) },
    });
    this.life = this.#newLife(1);
  }

  get hooks(): boolean {
    return this.#options.hooks;
  }

  get slots(): number {
    return this.#options.slots;
  }

  /** The first life, with its sessions made. */
  async begin(): Promise<void> {
    this.life.store.parks = false;
    await this.life.start();
    for (let number = 1; number <= this.#options.sessions; number += 1) {
      this.sessions.push((await this.life.engine.create(undefined, {})).id);
    }
    this.life.store.parks = true;
  }

  violate(rule: string, message: string): void {
    this.trace.note(`  ! ${rule} ${message}`);
    this.violations.push({ rule, message });
  }

  /** Everything that can happen by itself has happened when this resolves. */
  async drain(): Promise<void> {
    await settled();
    if (this.life.phase === "over") return;
    this.models.drained();
    this.times.drained();
    checkStops(this);
  }

  apply(parked: Parked): void {
    this.trace.note(`apply ${parked.verb} ${parked.about}`);
    parked.apply();
  }

  answer(parked: Parked): void {
    this.trace.note(`answer ${parked.verb} ${parked.about}`);
    this.life.store.drop(parked);
    parked.answer();
  }

  fail(parked: Parked, code: "store_full" | "store_locked" | "store_corrupt" | "unavailable"): void {
    this.trace.note(`fail ${parked.verb} ${parked.about} ${code}`);
    this.life.faults += 1;
    this.troubles += 1;
    // What was decided is decided anew, and an id that was not recorded may come to name something else.
    this.processes.stopped.clear();
    this.life.store.drop(parked);
    parked.fail(code);
  }

  loseAnswer(parked: Parked): void {
    this.trace.note(`lose answer of ${parked.verb} ${parked.about}`);
    this.life.faults += 1;
    this.troubles += 1;
    // What was decided is decided anew, and an id that was not recorded may come to name something else.
    this.processes.stopped.clear();
    this.life.store.drop(parked);
    parked.apply();
    parked.fail("unavailable");
  }

  /** The store never answers this call. */
  silence(parked: Parked, applied: boolean): void {
    this.trace.note(`silence ${parked.verb} ${parked.about}${applied ? ", applied" : ""}`);
    // A timer that fires late gives the store a little longer.
    this.silentUntil = Math.max(this.silentUntil, this.clock.elapsed() + STORE_WAIT_MS + 500);
    this.life.faults += 1;
    this.troubles += 1;
    this.life.store.drop(parked);
    if (applied) parked.apply();
  }

  /** The store answers this call after a while. A life that has ended by then is not answered. */
  slowDown(parked: Parked, { commitMs, applied }: Omit<Extract<TroubleKind, { kind: "slow" }>, "kind">): void {
    this.trace.note(`slow ${parked.verb} ${parked.about}, ${commitMs} ms, applied ${applied}`);
    this.#later(parked, commitMs, () => parked.answer());
    if (applied === "at-once") parked.apply();
  }

  /** The store refuses this call after a while. */
  refuseLater(parked: Parked, code: ControlCode, afterMs: number): void {
    this.trace.note(`refuse ${parked.verb} ${parked.about} after ${afterMs} ms`);
    this.#later(parked, afterMs, () => parked.fail(code));
  }

  #later(parked: Parked, afterMs: number, settle: () => void): void {
    this.life.faults += 1;
    // A computer that sleeps for 5 s meanwhile finds that the store has not answered in time.
    this.troubles += 1;
    this.silentUntil = Math.max(this.silentUntil, this.clock.elapsed() + afterMs);
    const { store } = this.life;
    store.drop(parked);
    this.clock.after(afterMs, () => {
      if (store.over) return;
      this.trace.note(`answer ${parked.verb} ${parked.about}, late`);
      settle();
    });
  }

  /** Time passes until the next timer fires; `lateMs`: it fires that much too late, with all that fell due by then. */
  tick(lateMs = 0): void {
    const next = this.clock.pending[0];
    if (next === undefined) return;
    const overdue = this.#overdueIn(next.inMs + lateMs);
    const hangs = this.#options.faults === true && this.life.phase !== "starting";
    if (overdue !== undefined && !hangs) {
      this.answer(overdue);
      return;
    }
    this.trace.note(`tick ${next.inMs}${lateMs === 0 ? "" : `, late by ${lateMs}`}`);
    this.#pass(() => (lateMs === 0 ? this.clock.tick(next.inMs) : this.clock.wakeAfter(next.inMs + lateMs)));
  }

  /** The lid is closed, and opened again. `taken`: another worker has what had run out by then. */
  sleep(ms: number, meanwhile: "alone" | "taken"): void {
    this.trace.note(`sleep ${ms}, ${meanwhile}`);
    // The first thing that happens, before any timer of ours.
    if (meanwhile === "taken") this.clock.after(0, () => this.#takeAway());
    this.#pass(() => this.clock.wakeAfter(ms));
    this.silentUntil = Math.max(this.silentUntil, this.clock.elapsed() + 500);
  }

  /** Somebody sets the clock on the wall. Nothing may come of it. */
  async jump(ms: number): Promise<void> {
    this.trace.note(`jump ${ms}`);
    const before = this.#stillness();
    this.clock.jump(ms);
    await this.drain();
    if (this.#stillness() !== before)
      this.violate("G34", `The wall clock was set by ${ms} ms, and something happened.`);
  }

  #stillness(): string {
    const { life, clock, facts } = this;
    const heads = this.sessions.map((session) => facts.head(session));
    const { turns, calls } = life.actors;
    return JSON.stringify([clock.pending, heads, life.store.parked.length, turns.length, calls.length]);
  }

  /** A call that the store would have kept waiting for too long by then: only a store with faults does that. */
  #overdueIn(ms: number): Parked | undefined {
    const at = this.clock.elapsed() + ms;
    return this.life.store.parked.find(({ verb, since }) => verb !== "close" && at - since >= STORE_WAIT_MS);
  }

  #pass(time: () => void): void {
    const { store, phase } = this.life;
    const renewedAt = phase === "open" ? store.renewedAt : undefined;
    time();
    if (this.#overdueIn(0) !== undefined) {
      this.life.faults += 1;
      this.troubles += 1;
    }
    const at = this.clock.elapsed();
    if (renewedAt !== undefined && at - renewedAt >= HOLD_MS) this.#release(at);
  }

  /** Another worker takes every lease that has run out, and dies at once: whoever had them must not write any more. */
  #takeAway(): void {
    for (const session of this.sessions) {
      // The store applies what it is asked for before its promise is awaited.
      const claim = this.disk.store.claim(session, OTHER, LEASE_MS);
      void this.disk.store.release(session, OTHER);
      void claim.then(({ kind }) => {
        if (kind === "claimed") this.#lost();
      });
    }
  }

  /** What it drove is not its own any more, and what it had decided counts for nothing. */
  #lost(): void {
    this.life.faults += 1;
    this.troubles += 1;
    this.life.release = true;
    this.stops.forget();
  }

  /** A store that says nothing for so long is in trouble as well: whoever drives has let go. */
  #release(at: number): void {
    this.#lost();
    this.life.store.renewedAt = at;
    for (const { request, manner, dying } of this.world.going) {
      if (manner !== "escapes" && !dying) this.violate("G26", `${request.id} goes on, and its worker has let go.`);
    }
  }

  /** The worker vanishes. What it had sent to the store arrives, or does not. */
  async crash(takeover: Takeover, trees: "die" | "survive" = "die"): Promise<void> {
    this.trace.note(`crash ${takeover}, trees ${trees}`);
    for (const parked of this.life.store.parked) {
      if (parked.verb === "append" && parked.phase === "waiting" && this.chooser.below(2) === 1) this.apply(parked);
    }
    await this.drain();
    await this.#restart(takeover, trees);
  }

  /** The orderly end has been reached: on to the next life. */
  async restartAfterClose(): Promise<void> {
    const { report } = this.life;
    this.trace.note(`restart, ${report?.unfinished.length} unfinished`);
    for (const session of this.sessions) {
      if (report?.unfinished.includes(session) === true) continue;
      const live = this.facts.live(session);
      // A run this life never took up is the next one's to take up.
      const ours = !this.life.release && this.life.actors.turns.some((turn) => turn.runId === live?.id);
      if (live !== undefined && ours && !live.parked) {
        this.violate("G25", `${live.id} was neither set down nor ended by an orderly shutdown.`);
      }
    }
    for (const id of this.world.survivors) {
      // Nobody can wait for a death that is never verified.
      if (this.world.children.get(id)?.child.deathVerified === "never") continue;
      this.violate("G25", `${id} goes on after an orderly shutdown.`);
    }
    await this.#restart("released");
  }

  async #restart(takeover: Takeover, trees: "die" | "survive" = "die"): Promise<void> {
    const { worker } = this.life;
    checkWorks(this);
    this.life.end();
    this.world.crashed(trees);
    this.stops.forget();
    this.processes.lifeOver();
    await this.drain();
    if (takeover === "released") for (const session of this.sessions) await this.disk.store.release(session, worker);
    if (takeover === "expired") this.clock.tick(LEASE_MS);
    this.lives += 1;
    // Before it takes anything up, a life ends what earlier ones have left.
    this.world.sweep();
    this.life = this.#newLife(this.lives);
    void this.life.start();
  }

  #newLife(number: number): Life {
    return new Life({
      number,
      disk: this.disk,
      clock: this.clock,
      ids: this.#ids,
      watch: this.witness,
      slotsMax: this.#options.slots,
      onCrash: this.#options.onCrash,
      hooks: this.#options.hooks,
      metered: this.#options.metered,
      runLimitMs: this.#options.runLimitMs,
      model: this.#options.model,
      world: this.#options.processes ? this.world : undefined,
      notice: (notice) => this.#notice(notice),
    });
  }

  #notice(notice: Notice): void {
    if (notice.type === "bug") this.violate("G28", `A contradiction inside: ${String(notice.error)}`);
    else this.trace.note(`  ~ ${notice.type}`);
  }
}

/** Foreseeable, and cheap: a digest only has to tell texts apart. */
function simIds(): Ids {
  let next = 0;
  return {
    make(prefix) {
      next += 1;
      return prefix + next;
    },
    digest: (text) => text,
  };
}
