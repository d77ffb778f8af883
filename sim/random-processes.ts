// The processes' part of a random schedule: what calls and people do with them, and what they do by themselves.
import type { Feedback } from "../src/core/model/event.ts";
import type { ProcessId, SessionId } from "../src/core/model/ids.ts";
import type { ExitBehavior, ScriptedChild } from "../src/testing/scripted-child.ts";
import type { CallActor } from "./actors.ts";
import { type Chooser, chance, pick, weighted } from "./chooser.ts";
import type { ProcessFacts } from "./process-book.ts";
import type { ChildPlan } from "./process-world.ts";
import type { ScheduleOptions } from "./schedule-options.ts";
import type { Simulation } from "./simulation.ts";

/** How long calls wait, and what they may take, in times that a schedule can live to see. */
const LIMIT_MS = 2_000;
const BACKGROUND_AFTER_MS = 1_000;

export class RandomProcesses {
  readonly #simulation: Simulation;
  readonly #flavour: ScheduleOptions;
  readonly #chooser: Chooser;

  constructor(simulation: Simulation, flavour: ScheduleOptions) {
    this.#simulation = simulation;
    this.#flavour = flavour;
    this.#chooser = simulation.chooser;
    simulation.world.plan = () => this.#plan();
  }

  get canMove(): boolean {
    if (!this.#flavour.processes) return false;
    const { world } = this.#simulation;
    return world.running.length > 0 || world.starting.length > 0;
  }

  /** Something happens to processes by itself; now and then to two of them in the same tick. */
  move(): void {
    const { world, trace } = this.#simulation;
    const { starting } = world;
    if (starting.length > 0 && chance(this.#chooser, world.running.length === 0 ? 100 : 50)) {
      const { request, gate } = pick(this.#chooser, starting);
      trace.note(`let ${request.id} start`);
      gate.open();
      return;
    }
    for (let count = chance(this.#chooser, 25) ? 2 : 1; count > 0 && world.running.length > 0; count -= 1) {
      this.#child(pick(this.#chooser, world.running));
    }
  }

  /** A call that has been told what it waited for has something to tell. */
  isTempting({ processes }: CallActor): boolean {
    const { processes: some, patient } = this.#flavour;
    return some && processes.pending < 3 && !(patient && processes.told.size > 0 && chance(this.#chooser, 80));
  }

  /** Starts one, waits for it, and tells how it ended. */
  patiently(actor: CallActor): void {
    const { processes, live } = actor;
    const { trace } = this.#simulation;
    const [handle] = processes.handles;
    // Now and then it returns while something it has asked for is still on its way.
    const hasty = processes.pending > 0 && chance(this.#chooser, 50);
    if (processes.told.size > 0 || hasty) {
      trace.note(`complete ${live.callId}`);
      actor.complete();
    } else if (handle === undefined) {
      if (processes.pending > 0) return;
      const detach = chance(this.#chooser, 45);
      trace.note(`${detach ? "run" : "start"} process by ${live.callId}`);
      const feedback = this.#feedback();
      if (detach) processes.run(`of ${live.callId}`, { backgroundAfterMs: BACKGROUND_AFTER_MS, feedback });
      else processes.start(`of ${live.callId}`, { feedback });
    } else {
      trace.note(`wait process by ${live.callId}`);
      processes.wait(handle, this.#limit());
    }
  }

  /** Now and then a call that waits for a process has had enough. */
  loseTemper(): void {
    const { life, trace } = this.#simulation;
    if (!this.#flavour.processes || life.phase === "over" || !chance(this.#chooser, 25)) return;
    const actor = life.actors.calls.find((one) => one.end === undefined && one.processes.pending > 0 && !one.aborted);
    if (actor === undefined) return;
    trace.note(`complete ${actor.id}`);
    actor.complete();
  }

  byCall({ processes, live }: CallActor): void {
    const known = this.#known(live.sessionId);
    const { handles } = processes;
    const move = weighted(this.#chooser, [
      [this.#flavour.patient && handles.length > 0 ? 1 : 5, "run"],
      [this.#flavour.patient && handles.length > 0 ? 1 : 6, "start"],
      [handles.length > 0 ? (this.#flavour.patient ? 24 : 8) : 0, "wait"],
      [known.length > 0 ? 3 : 0, "find"],
      [handles.length > 0 ? 1 : 0, "cancel"],
    ] as const);
    const { trace } = this.#simulation;
    trace.note(`${move} process by ${live.callId}`);
    const limit = chance(this.#chooser, 20) ? { timeoutMs: LIMIT_MS } : {};
    const feedback = this.#feedback();
    if (move === "start") processes.start(`of ${live.callId}`, { ...limit, feedback });
    else if (move === "wait") processes.wait(pick(this.#chooser, handles), this.#limit());
    else if (move === "find") processes.find(pick(this.#chooser, known.slice(-4)).id);
    else if (move === "cancel") processes.cancel(pick(this.#chooser, handles), `by ${live.callId}`);
    else {
      const detach = chance(this.#chooser, 75) ? { backgroundAfterMs: BACKGROUND_AFTER_MS, feedback } : {};
      processes.run(`of ${live.callId}`, { ...limit, ...detach });
    }
  }

  byClient(session: SessionId): void {
    const { clients } = this.#simulation;
    const known = this.#known(session);
    const some = known.length > 0;
    const move = weighted(this.#chooser, [
      [4, "start"],
      [some ? 5 : 0, "cancel"],
      [some ? 3 : 0, "wait"],
    ] as const);
    if (move === "start") clients.start(session, { feedback: this.#feedback() });
    else if (move === "cancel") this.#cancel(session, this.#one(known));
    else clients.waitFor(session, this.#one(known), this.#limit());
  }

  /** Whether a cancel of a session leaves the background alone. */
  isKept(): boolean {
    return this.#flavour.processes && chance(this.#chooser, 35);
  }

  /** Somebody stops it; now and then in the tick in which it ends, before or after. */
  #cancel(session: SessionId, id: ProcessId): void {
    const { clients, world } = this.#simulation;
    const child = world.going.find(({ request }) => request.id === id);
    const order = child === undefined ? 0 : this.#chooser.below(6);
    if (order === 1) this.#end(child);
    clients.cancelProcess(session, id);
    if (order === 2) this.#end(child);
  }

  #child(child: ScriptedChild): void {
    if (!chance(this.#chooser, 20)) this.#end(child);
    else child.say(`${child.output.counts.lines}\n`);
  }

  #end(child: ScriptedChild | undefined): void {
    if (child === undefined || child.end !== undefined || child.dying) return;
    const how = this.#chooser.below(4);
    this.#simulation.trace.note(`${how === 0 ? "crash of" : "exit of"} ${child.request.id}`);
    if (how === 0) child.die("SIGSEGV");
    else child.exit(how - 1);
  }

  #plan(): ChildPlan {
    const { slowStarts, manners } = this.#flavour;
    const whenStopped = pick(this.#chooser, manners);
    const plan = { whenStopped, ...this.#death(whenStopped) };
    if (!slowStarts) return plan;
    const late = chance(this.#chooser, 60);
    return chance(this.#chooser, 15) ? { ...plan, late, refused: "not_started" } : { ...plan, late };
  }

  /** Most deaths are verified late, or never, in schedules about that. */
  #death(whenStopped: ExitBehavior): Pick<ChildPlan, "deathVerified"> {
    const { deathVerified } = this.#flavour;
    if (deathVerified === undefined || !chance(this.#chooser, 70)) return {};
    const verified = pick(this.#chooser, deathVerified);
    // What escapes does not die, so it would never end.
    return verified === "never" && whenStopped === "escapes" ? {} : { deathVerified: verified };
  }

  #known(session: SessionId): readonly ProcessFacts[] {
    return this.#simulation.facts.processes.of(session);
  }

  /** Mostly one that goes on. */
  #one(known: readonly ProcessFacts[]): ProcessId {
    const going = known.filter((one) => one.settled === undefined);
    return pick(this.#chooser, going.length > 0 && chance(this.#chooser, 80) ? going : known.slice(-4)).id;
  }

  #limit(): number | undefined {
    return chance(this.#chooser, 30) ? LIMIT_MS : undefined;
  }

  #feedback(): Feedback {
    return weighted<Feedback>(this.#chooser, [
      [4, "wake"],
      [4, "next-turn"],
      [1, "silent"],
    ]);
  }
}
