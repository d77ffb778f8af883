// One life of the house on a store in trouble: from a start to an orderly end, or to a crash. The disk and the clock go
// on; nothing else does.
import type { Retention } from "../../src/core/model/retention.ts";
import { Engine } from "../../src/engine/engine.ts";
import type { Agent } from "../../src/ports/agent.ts";
import type { Clock, Ids } from "../../src/ports/clock.ts";
import type { Notice } from "../../src/ports/hooks.ts";
import type { Store } from "../../src/ports/store.ts";
import { Belay } from "../../src/sdk/belay.ts";
import { BulkStops } from "../../src/sdk/bulk-stops.ts";
import { directoryChoice } from "../../src/sdk/directories.ts";
import { ResourceMeter } from "../../src/sdk/resources.ts";
import type { ManualClock } from "../../src/testing/manual-clock.ts";
import { type ScriptedSpawner, scriptedSpawner } from "../../src/testing/scripted-spawner.ts";

export interface LifeParts {
  readonly number: number;
  readonly store: Store;
  readonly clock: ManualClock;
  readonly ids: Ids;
  readonly agent: Agent;
  readonly liveRunsMax: number;
  readonly runLimitMs: number | undefined;
  readonly retention: Retention | undefined;
  /** A process has begun. */
  readonly began: (id: string) => void;
  readonly notice: (notice: Notice) => void;
}

export const GRACE_MS = 1_500;

export class Life {
  readonly number: number;
  readonly engine: Engine;
  readonly belay: Belay;
  readonly spawner: ScriptedSpawner;
  /** Crashed: nothing of it happens any more. */
  over = false;
  readonly #clock: ManualClock;
  readonly #timers = new Set<{ dispose: () => void; readonly idle: boolean }>();

  constructor(parts: LifeParts) {
    this.number = parts.number;
    this.#clock = parts.clock;
    const clock = this.#lifeClock();
    this.spawner = scriptedSpawner({ clock, started: ({ request }) => parts.began(request.id) });
    this.engine = new Engine({
      store: this.#lifeStore(parts.store),
      agent: parts.agent,
      clock,
      ids: parts.ids,
      notify: parts.notice,
      graceMs: GRACE_MS,
      liveRunsMax: parts.liveRunsMax,
      resume: "resume",
      hooks: {},
      spawner: () => Promise.resolve(this.spawner),
      tap: undefined,
      runLimitMs: parts.runLimitMs,
      retention: parts.retention,
    });
    this.belay = new Belay({
      engine: this.engine,
      directory: directoryChoice("workspace", "/"),
      meter: new ResourceMeter(clock, false),
      stopAlls: new BulkStops(this.engine, clock),
      onClosing: () => {},
    });
  }

  /** Timers that keep a program alive. */
  get busyTimers(): number {
    return [...this.#timers].filter(({ idle }) => !idle).length;
  }

  get idleTimers(): number {
    return this.#timers.size - this.busyTimers;
  }

  /** As after kill -9: it answers nobody and sets nothing in motion any more. */
  crash(): void {
    this.over = true;
    for (const timer of this.#timers) timer.dispose();
    this.#timers.clear();
  }

  #lifeClock(): Clock {
    return {
      now: () => this.#clock.now(),
      elapsed: () => this.#clock.elapsed(),
      after: (ms, call, kind) => {
        if (this.over) return () => {};
        const timer = { dispose: () => {}, idle: kind === "idle" };
        this.#timers.add(timer);
        const dispose = this.#clock.after(
          ms,
          () => {
            this.#timers.delete(timer);
            call();
          },
          kind,
        );
        timer.dispose = dispose;
        return () => {
          this.#timers.delete(timer);
          dispose();
        };
      },
    };
  }

  /** A dead worker neither asks the store nor hears its answers; what it had asked may still happen. */
  #lifeStore(store: Store): Store {
    const never = new Promise<never>(() => {});
    const living = <T extends object>(part: T): T => new Proxy<T>(part, handler as ProxyHandler<T>);
    const handler: ProxyHandler<object> = {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (name === "upkeep") return living(Object(value) as object);
        if (typeof value !== "function") return value;
        return async (...asked: readonly unknown[]): Promise<unknown> => {
          if (this.over) return never;
          try {
            const answer: unknown = await value.apply(target, asked);
            return this.over ? never : answer;
          } catch (error) {
            if (this.over) return never;
            throw error;
          }
        };
      },
    };
    return living(store);
  }
}
