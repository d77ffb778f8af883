// Time, as a schedule knows it: nothing that has a limit ends before it, whatever the clocks on the wall say.
import type { Event } from "../src/core/model/event.ts";
import type { RunId, Work } from "../src/core/model/ids.ts";
import { type Actor, hears } from "./actors.ts";
import type { Facts } from "./facts.ts";
import { isHeldUp, laneOf } from "./lane-of.ts";
import { GRACE_MS, type Life } from "./life.ts";

/** Two thirds of a lease are no whole number, and sums of such are not exact. */
export const ROUNDING_MS = 0.001;

interface Parts {
  readonly facts: Facts;
  readonly life: () => Life;
  readonly elapsed: () => number;
  readonly runLimitMs: number | undefined;
  readonly violate: (rule: string, message: string) => void;
}

export class TimeObserver {
  readonly #parts: Parts;
  /** When something was asked for, began, or was first seen to have been told to stop. */
  readonly #requested = new Map<Work, number>();
  readonly #started = new Map<RunId, number>();
  /** When something of a run was first seen to go on, by life. */
  readonly #seen = new Map<string, number>();
  readonly #stopped = new Map<Actor, number>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** These are on the disk, as of now. */
  recorded(events: readonly Event[]): void {
    for (const event of events) this.#note(event);
  }

  /** Everything that could happen by itself has happened. */
  drained(): void {
    const { facts, elapsed, runLimitMs } = this.#parts;
    const life = this.#parts.life();
    const { actors, release: letGo, number } = life;
    for (const actor of actors.going) {
      if (actor.aborted && !this.#stopped.has(actor)) this.#stopped.set(actor, elapsed());
      const name = `${actor.runId} in life ${number}`;
      const seen = this.#seen.get(name) ?? (this.#isTakenUp(actor) ? elapsed() : undefined);
      if (seen === undefined) continue;
      this.#seen.set(name, seen);
      if (runLimitMs === undefined || letGo || isHeldUp(laneOf(actor, facts, life))) continue;
      if (elapsed() - seen > runLimitMs + ROUNDING_MS && !actor.aborted && hears(actor)) {
        this.#parts.violate("G34", `${actor.id} goes on, and the time of its run is up.`);
      }
    }
  }

  /** Its time counts from when it is known to be this worker's. What may be repeated goes on before that. */
  #isTakenUp(actor: Actor): boolean {
    const lane = laneOf(actor, this.#parts.facts, this.#parts.life());
    return lane === undefined || lane.durable.live?.recoveries === lane.decided.live?.recoveries;
  }

  #note(event: Event): void {
    const { elapsed, facts } = this.#parts;
    const now = elapsed();
    switch (event.type) {
      case "turn.requested":
        this.#requested.set(event.turnId, now);
        return;
      case "call.requested":
        this.#requested.set(event.callId, now);
        return;
      case "run.started":
      case "run.recovered":
        this.#started.set(event.runId, now);
        return;
      case "question.settled": {
        const owner = facts.questions.get(event.questionId)?.owner;
        const since = owner === undefined ? undefined : this.#requested.get(owner);
        if (event.ending.kind === "expired") this.#notBefore(event.questionId, since, event.ending.limitMs);
        return;
      }
      case "call.cancel_requested":
        if (event.reason.kind === "timeout") {
          this.#notBefore(event.callId, this.#requested.get(event.callId), event.reason.limitMs);
        }
        return;
      case "run.cancel_requested":
        if (event.reason.kind === "timeout") {
          this.#notBefore(event.runId, this.#started.get(event.runId), event.reason.limitMs);
        }
        return;
      case "turn.settled":
        this.#settled(event.turnId, event.outcome);
        return;
      case "call.settled":
        this.#settled(event.callId, event.outcome);
        return;
      default:
        return;
    }
  }

  #settled(id: Work, outcome: Extract<Event, { type: "call.settled" }>["outcome"]): void {
    if (outcome.kind !== "cancelled" || outcome.abandoned === undefined) return;
    for (const [actor, at] of this.#stopped) if (actor.id === id) this.#notBefore(id, at, GRACE_MS);
  }

  #notBefore(what: string, since: number | undefined, limitMs: number): void {
    if (since === undefined || this.#parts.elapsed() - since >= limitMs - ROUNDING_MS) return;
    this.#parts.violate(
      "G34",
      `${what} was given ${limitMs} ms, and ended ${limitMs - this.#parts.elapsed() + since} ms early.`,
    );
  }
}
