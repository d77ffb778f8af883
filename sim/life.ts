// One life of the engine: from a start to a crash or an orderly end. The disk and the clock go on; nothing else does.
import type { WorkerId } from "../src/core/model/ids.ts";
import { Engine } from "../src/engine/engine.ts";
import { type ShutdownMode, type ShutdownReport, shutDown } from "../src/engine/shutdown.ts";
import type { Clock, Ids } from "../src/ports/clock.ts";
import type { Notice } from "../src/ports/hooks.ts";
import type { ManualClock } from "../src/testing/manual-clock.ts";
import { Actors, type Watch } from "./actors.ts";
import { ModelAgents, type ModelOptions, type ModelWatch } from "./model-agents.ts";
import type { ProcessWorld } from "./process-world.ts";
import { ScriptedHooks } from "./scripted-hooks.ts";
import { type Disk, SimStore } from "./sim-store.ts";

export const GRACE_MS = 1_500;

export interface LifeParts {
  readonly number: number;
  readonly disk: Disk;
  readonly clock: ManualClock;
  readonly ids: Ids;
  readonly watch: Watch & ModelWatch;
  readonly slotsMax: number;
  readonly onCrash: "resume" | "lose";
  /** Whether the host has hooks. */
  readonly hooks: boolean;
  /** Whether agents count what they cost. */
  readonly metered: boolean;
  readonly runLimitMs: number | undefined;
  /** If its agent is the real loop over a model. */
  readonly model: ModelOptions | undefined;
  /** Where its processes go on, if it may start any. */
  readonly world: ProcessWorld | undefined;
  readonly notice: (notice: Notice) => void;
}

export class Life {
  readonly number: number;
  readonly store: SimStore;
  readonly actors: Actors;
  readonly host: ScriptedHooks;
  readonly engine: Engine;
  phase: "starting" | "open" | "closing" | "over" = "starting";
  /** Faults of the store it has met; while there are none, nobody may be told of trouble. */
  faults = 0;
  /** The store was silent for so long that it had to let go of what it drove. */
  release = false;
  late = 0;
  report: ShutdownReport | undefined;
  readonly #clock: ManualClock;
  readonly #timers = new Set<{ dispose: () => void; idle: boolean }>();

  constructor(parts: LifeParts) {
    this.number = parts.number;
    this.#clock = parts.clock;
    this.store = new SimStore(parts.disk);
    this.actors = new Actors(parts.watch, parts.number, parts.metered);
    const note = (line: string): void => parts.disk.trace.note(line);
    this.host = new ScriptedHooks({ facts: parts.disk.facts, note, violate: parts.disk.violate });
    const clock = this.#lifeClock();
    const { world } = parts;
    const elapsed = (): number => this.#clock.elapsed();
    const { actors } = this;
    const loop = parts.model && new ModelAgents({ actors, watch: parts.watch, options: parts.model, elapsed });
    this.engine = new Engine({
      store: this.store,
      agent: loop?.agent ?? actors.agent,
      clock,
      ids: parts.ids,
      hooks: parts.hooks ? this.host.hooks : {},
      runLimitMs: parts.runLimitMs,
      notify: (notice) => {
        if (this.phase === "over") return;
        if (notice.type === "late") this.late += 1;
        parts.notice(notice);
      },
      graceMs: GRACE_MS,
      liveRunsMax: parts.slotsMax,
      resume: parts.onCrash,
      tap: undefined,
      spawner: world === undefined ? undefined : () => Promise.resolve(world.spawner(parts.number, clock)),
    });
  }

  get worker(): WorkerId {
    return this.engine.worker;
  }

  /** Timers of this life that keep a program alive. */
  get busyTimers(): number {
    let busy = 0;
    for (const timer of this.#timers) if (!timer.idle) busy += 1;
    return busy;
  }

  get timers(): number {
    return this.#timers.size;
  }

  start(): Promise<void> {
    return this.engine.start().then(() => {
      if (this.phase === "starting") this.phase = "open";
    });
  }

  close(mode: ShutdownMode, limitMs: number): Promise<void> {
    this.phase = "closing";
    for (const parked of this.store.parked) if (parked.verb === "claim") parked.apply();
    this.store.leaving = true;
    const limit = new Promise<void>((resolve) => this.engine.clock.after(limitMs, resolve));
    return shutDown(this.engine, mode, limit).then((report) => {
      this.report = report;
    });
  }

  /** From here on nothing of it happens any more. */
  end(): void {
    this.phase = "over";
    this.store.over = true;
    this.store.parked.length = 0;
    this.actors.over = true;
    this.host.over = true;
    for (const timer of this.#timers) timer.dispose();
    this.#timers.clear();
  }

  /** Timers die with the life that set them. */
  #lifeClock(): Clock {
    return {
      now: () => this.#clock.now(),
      elapsed: () => this.#clock.elapsed(),
      after: (ms, call, kind) => {
        if (this.phase === "over") return () => {};
        const timer = { dispose: () => {}, idle: kind === "idle" };
        this.#timers.add(timer);
        const dispose = this.#clock.after(ms, () => {
          this.#timers.delete(timer);
          call();
        });
        timer.dispose = dispose;
        return () => {
          this.#timers.delete(timer);
          dispose();
        };
      },
      immediate: (call) => this.#clock.immediate(() => this.phase !== "over" && call()),
    };
  }
}
