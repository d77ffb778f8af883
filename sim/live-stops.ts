// Observes stops live: a stop that was decided has reached running work in the same tick, before the store is asked.
import type { CallId, RunId, SessionId } from "../src/core/model/ids.ts";
import { hears } from "./actors.ts";
import type { Life } from "./life.ts";
import { ModelTurn } from "./model-turn.ts";
import type { ProcessObserver } from "./process-observer.ts";

interface Parts {
  readonly processes: ProcessObserver;
  readonly life: () => Life;
  readonly violate: (rule: string, message: string) => void;
}

export class LiveStops {
  readonly #parts: Parts;
  /** Runs of this life whose stop was decided: no new work of theirs may begin. */
  readonly stopped = new Set<RunId>();
  readonly stoppedCalls = new Set<CallId>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** The worker is gone, or has lost its lease: what it decided and did not record does not count. */
  forget(): void {
    this.stopped.clear();
    this.stoppedCalls.clear();
    this.#parts.processes.stopped.clear();
  }

  /** A cancel of an approval was refused: its call was never stopped. */
  refusedForQuestion(): void {
    this.stoppedCalls.clear();
  }

  /** Once a cancel is decided, all live work of its run is aborted in the same tick. */
  stopsAtOnce(session: SessionId): void {
    const life = this.#parts.life();
    const lane = life.engine.lanes.peek(session);
    if (lane?.phase !== "ready") return;
    const run = lane.decided.live;
    this.#parts.processes.stopAtOnce(lane);
    if (run === undefined) return;
    // A stop by way of an approval can still be refused: it aborts once it is recorded.
    const unsure = [...lane.pending, ...(lane.flight?.entries ?? [])].some(
      ({ command }) => command?.type === "cancel-question",
    );
    if (!unsure) for (const call of run.live) if (call.phase === "stopping") this.#callStops(call.id);
    if (run.phase !== "stopping") return;
    // The store can still refuse an interrupt, and then nothing may have happened: it aborts once it is recorded.
    if (run.reason.kind === "superseded") return;
    this.stopped.add(run.id);
    for (const actor of life.actors.going) {
      if (actor.runId === run.id && !actor.aborted && hears(actor))
        this.#parts.violate("G28", `${actor.id} was not aborted at once.`);
      if (actor.runId === run.id && actor instanceof ModelTurn && actor.request !== undefined) {
        this.#parts.violate("G13", `The model of ${actor.id} was not aborted at once.`);
      }
    }
  }

  /** A cancel by id of a run that is live here does not wait for the store. */
  reaches(session: SessionId, target: string): void {
    const lane = this.#parts.life().engine.lanes.peek(session);
    const live = lane?.phase === "ready" && lane.epoch !== undefined ? lane.durable.live : undefined;
    if (lane === undefined || live?.id !== target || live.phase !== "running") return;
    for (const { id, phase, scope } of lane.works) {
      if (phase === "live" && scope.reason === undefined) {
        this.#parts.violate("G28", `${id} was not aborted in the tick in which its run was cancelled.`);
      }
    }
  }

  #callStops(id: CallId): void {
    this.stoppedCalls.add(id);
    const actor = this.#parts.life().actors.calls.find((one) => one.id === id && one.end === undefined);
    if (actor !== undefined && !actor.aborted && actor.hears) {
      this.#parts.violate("G28", `${id} was not aborted at once.`);
    }
  }
}
