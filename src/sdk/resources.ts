// Resource usage of this program.
import { readdirSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { LOOP_DELAY_MS } from "../core/limits.ts";
import type { Resources } from "../core/model/upkeep.ts";
import type { Clock } from "../ports/clock.ts";

/** `watch`: whether the delay of the event loop is measured. */
export class ResourceMeter {
  readonly #clock: Clock;
  readonly #delay: ReturnType<typeof monitorEventLoopDelay> | undefined;
  #since: number;
  #before: number | undefined;

  constructor(clock: Clock, watch: boolean) {
    this.#clock = clock;
    this.#since = clock.elapsed();
    if (!watch) return;
    this.#delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
    this.#delay.enable();
  }

  read(): Resources {
    const { rss, heapUsed } = process.memoryUsage();
    return { memoryBytes: rss, heapBytes: heapUsed, loopDelayMs: this.#loopDelay(), descriptors: descriptors() };
  }

  close(): void {
    this.#delay?.disable();
  }

  /** The worst delay of the last one to two minutes, without the resolution of the measurement itself. */
  #loopDelay(): number | undefined {
    if (this.#delay === undefined) return undefined;
    const now = Math.max(0, this.#delay.max / 1e6 - RESOLUTION_MS);
    const worst = Math.max(now, this.#before ?? 0);
    if (this.#clock.elapsed() - this.#since >= LOOP_DELAY_MS) {
      this.#since = this.#clock.elapsed();
      this.#before = now;
      this.#delay.reset();
    }
    return Math.round(worst * 10) / 10;
  }
}

const RESOLUTION_MS = 20;

/** The number of open files and sockets. Undefined: the system does not report it. */
function descriptors(): number | undefined {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return undefined;
  }
}
