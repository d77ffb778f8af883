// Decides which session starts its next run: sessions with a queue and no live run take turns for a limited number of
// slots.
//
// Invariants
// 1. A session uses a slot while it has a live run. There is no counter: the slots in use are the sessions themselves.
// 2. First come, first served: a session whose run has ended goes behind the waiting ones.
// 3. A session whose log cannot be written starts nothing until its health allows it.
// 4. A run that an earlier or another worker has left live begins its work when there is a slot for it.
import type { Commit } from "../log/commit.ts";
import type { SessionState } from "../log/session-state.ts";

interface Parts {
  readonly slotsMax: number;
  readonly commit: Commit;
  /** Begins the work of a run that was live already. */
  readonly begin: (lane: SessionState) => void;
}

export class Dispatcher {
  readonly #slotsMax: number;
  readonly #commit: Commit;
  readonly #begin: (lane: SessionState) => void;
  readonly #waiting = new Set<SessionState>();
  readonly #live = new Set<SessionState>();
  #stopped = false;

  constructor(parts: Parts) {
    this.#slotsMax = parts.slotsMax;
    this.#commit = parts.commit;
    this.#begin = parts.begin;
  }

  /** Number of live runs, and of sessions that wait for a slot. */
  get load(): { readonly live: number; readonly waiting: number; readonly max: number } {
    return { live: this.#live.size, waiting: this.#waiting.size, max: this.#slotsMax };
  }

  /** Updates a session that has changed. Idempotent. */
  note(lane: SessionState): void {
    // @fault slot-not-given-back
    if (lane.decided.live === undefined || lane.epoch === undefined) this.#live.delete(lane);
    if (this.#wantsSlot(lane)) this.#waiting.add(lane);
    else this.#waiting.delete(lane);
    this.#fill();
  }

  /** Whether the work of its live run may begin. */
  hasSlot(lane: SessionState): boolean {
    return this.#live.has(lane);
  }

  /** Starts nothing from now on. */
  stop(): void {
    this.#stopped = true;
    this.#waiting.clear();
  }

  forget(lane: SessionState): void {
    this.#waiting.delete(lane);
    this.#live.delete(lane);
    this.#fill();
  }

  #fill(): void {
    if (this.#stopped) return;
    // @fault last-come-first-served
    for (const lane of this.#waiting) {
      if (this.#live.size >= this.#slotsMax) return;
      this.#waiting.delete(lane);
      this.#live.add(lane);
      if (lane.decided.live === undefined) this.#start(lane);
      else this.#begin(lane);
    }
  }

  #start(lane: SessionState): void {
    // Decided in this tick, which notes the session again. A failing store is reported in a separate notice.
    this.#commit.submit(lane, { type: "start" }).catch(() => {});
    if (lane.decided.live === undefined) this.#live.delete(lane);
  }

  #wantsSlot(lane: SessionState): boolean {
    return (
      lane.phase === "ready" &&
      lane.epoch !== undefined &&
      !this.#live.has(lane) &&
      (lane.decided.live !== undefined || (lane.decided.queue.length > 0 && this.#commit.takesCommands(lane)))
    );
  }
}
