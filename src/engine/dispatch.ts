// Who is next, across sessions: lanes with work and no live run take turns for a limited number of slots.
//
// Invariants
// 1. A lane holds a slot exactly while it has a live run.
// 2. First come, first served: a lane whose run has ended goes behind those that wait.
import { RETRY_FIRST_MS } from "../core/limits.ts";
import type { Clock } from "../ports.ts";
import type { Commit } from "./commit.ts";
import type { LiveLane } from "./live-lane.ts";

export class Dispatch {
  readonly #slotsMax: number;
  readonly #clock: Clock;
  readonly #commit: () => Commit;
  readonly #ready = new Set<LiveLane>();
  #used = 0;
  #stopped = false;

  constructor(parts: { readonly slotsMax: number; readonly clock: Clock; readonly commit: () => Commit }) {
    this.#slotsMax = parts.slotsMax;
    this.#clock = parts.clock;
    this.#commit = parts.commit;
  }

  /** Live runs, and lanes that wait for a slot. */
  get load(): { readonly live: number; readonly waiting: number; readonly max: number } {
    return { live: this.#used, waiting: this.#ready.size, max: this.#slotsMax };
  }

  /** Looks at a lane that has changed. Asking twice is harmless. */
  note(lane: LiveLane): void {
    const live = lane.decided.live !== undefined && lane.epoch !== undefined;
    if (lane.slot === "starting" && !live) return;
    if (live && lane.slot === "free") this.#used += 1;
    if (live) lane.slot = "held";
    else this.#free(lane);
    if (wantsSlot(lane)) this.#ready.add(lane);
    else this.#ready.delete(lane);
    this.#fill();
  }

  /** Starts nothing any more. */
  stop(): void {
    this.#stopped = true;
    this.#ready.clear();
  }

  forget(lane: LiveLane): void {
    this.#ready.delete(lane);
    this.#free(lane);
    this.#fill();
  }

  #fill(): void {
    if (this.#stopped) return;
    // @fault last-come-first-served
    for (const lane of this.#ready) {
      if (this.#used >= this.#slotsMax) return;
      this.#ready.delete(lane);
      this.#start(lane);
    }
  }

  #start(lane: LiveLane): void {
    lane.slot = "starting";
    this.#used += 1;
    this.#commit()
      .submit(lane, { type: "start" })
      .then(
        () => this.#settleStart(lane, 0),
        // The store is in trouble, which its own notice says. The run still waits; look again a little later.
        () => this.#settleStart(lane, RETRY_FIRST_MS),
      );
  }

  /** A start that came to nothing gives its slot back; one that did not takes it again at once. */
  #settleStart(lane: LiveLane, pauseMs: number): void {
    this.#free(lane); // @fault place-kept-by-a-failed-start
    if (pauseMs === 0 || lane.decided.live !== undefined) {
      this.note(lane);
      return;
    }
    this.#fill();
    this.#clock.after(pauseMs, () => this.note(lane));
  }

  #free(lane: LiveLane): void {
    if (lane.slot === "free") return;
    lane.slot = "free";
    this.#used -= 1; // @fault slot-not-given-back
  }
}

function wantsSlot(lane: LiveLane): boolean {
  return (
    lane.phase === "ready" &&
    lane.epoch !== undefined &&
    lane.decided.live === undefined &&
    lane.decided.queue.length > 0
  );
}
