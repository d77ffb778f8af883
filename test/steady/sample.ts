// What is measured while the load goes on, and whether it has stayed flat.
import { execFile } from "node:child_process";
import { rmSync, statSync } from "node:fs";
import { promisify } from "node:util";
import { copyFile } from "../../src/store/sqlite/file/copy-file.ts";
import { CHILD_ENV } from "../fixtures/child-env.ts";
import type { startLoad } from "./load.ts";

export interface Sample {
  readonly atSeconds: number;
  readonly storeMB: number;
  readonly memoryMB: number;
  readonly cpuMsPerRun: number;
  readonly startMs: number;
  readonly cancelMs: number;
  readonly sessions: number;
  readonly events: number;
}

type Load = Awaited<ReturnType<typeof startLoad>>;

const MB = 1e6;
const collect: () => void = (globalThis as { gc?: () => void }).gc ?? (() => {});

export class Sampler {
  readonly #load: Load;
  readonly #file: string;
  readonly #began = performance.now();
  #cpu = process.cpuUsage();
  #runs = 0;

  constructor(load: Load, file: string) {
    this.#load = load;
    this.#file = file;
  }

  async take(): Promise<Sample> {
    const cpu = process.cpuUsage(this.#cpu);
    const runs = this.#load.counts.runs - this.#runs;
    collect();
    const memoryBytes = heldBytes(process.memoryUsage());
    const store = (await this.#load.belay.status()).store;
    const cancelMs = this.#load.takeCancelMs();
    const startMs = await this.#startMs();
    this.#cpu = process.cpuUsage();
    this.#runs = this.#load.counts.runs;
    return {
      atSeconds: round((performance.now() - this.#began) / 1_000),
      storeMB: round(sizeOf(this.#file) / MB),
      memoryMB: round(memoryBytes / MB),
      cpuMsPerRun: round((cpu.user + cpu.system) / 1_000 / Math.max(1, runs)),
      ...{ startMs: round(startMs), cancelMs: round(cancelMs) },
      ...{ sessions: store?.sessions ?? 0, events: store?.events ?? 0 },
    };
  }

  /** Of a copy: what a server that starts on this store would take, in a process of its own. */
  async #startMs(): Promise<number> {
    const copy = `${this.#file}.copy`;
    for (const end of ["", "-wal", "-shm", ".lock", ".reserve", ".mark"]) rmSync(`${copy}${end}`, { force: true });
    copyFile(this.#file, copy);
    const program = new URL("./open-time.ts", import.meta.url).pathname;
    const { stdout } = await promisify(execFile)(process.execPath, [program, copy], { env: CHILD_ENV });
    return Number(stdout);
  }
}

/**
 * Resident memory without the part of the heap that is free after a collection. V8 takes tens of megabytes more for new
 * objects while a program is busy, up to a limit of its own: that looks like growth and holds nothing.
 */
export const heldBytes = ({ rss, heapTotal, heapUsed }: Memory): number => rss - (heapTotal - heapUsed);

type Memory = Pick<NodeJS.MemoryUsage, "rss" | "heapTotal" | "heapUsed">;

const round = (value: number): number => Math.round(value * 100) / 100;
const sizeOf = (file: string): number =>
  ["", "-wal"].reduce((sum, end) => sum + (statSync(`${file}${end}`, { throwIfNoEntry: false })?.size ?? 0), 0);

export const FLAT = ["storeMB", "memoryMB", "cpuMsPerRun", "startMs", "cancelMs"] as const;

export const SIZES = ["storeMB", "memoryMB"] as const;
export type Measure = (typeof FLAT)[number];

export interface Change {
  readonly before: number;
  readonly after: number;
  readonly growth: number;
}

/** The last third against the second: medians, so that one slow moment of the machine does not count. */
export function changeOf(samples: readonly Sample[]): Readonly<Record<Measure, Change>> {
  const third = Math.floor(samples.length / 3);
  const change = (key: Measure): Change => {
    const before = median(samples.slice(third, 2 * third).map((one) => one[key]));
    const after = median(samples.slice(2 * third).map((one) => one[key]));
    return { before, after, growth: round(after / Math.max(before, 0.01)) };
  };
  return Object.fromEntries(FLAT.map((key) => [key, change(key)])) as Record<Measure, Change>;
}

/** Less than this more is what a busy machine does: 1 MB, 5 MB of memory, half a millisecond of CPU, 20 ms. */
const NOISE: Readonly<Record<Measure, number>> = {
  ...{ storeMB: 1, memoryMB: 5, cpuMsPerRun: 0.5, startMs: 20, cancelMs: 20 },
};

/** How much more the last third may be than the second. */
const GROWTH_MAX = 1.25;

export const hasGrown = (key: Measure, { before, after, growth }: Change): boolean =>
  growth > GROWTH_MAX && after - before > NOISE[key];

/** More than this is a leak, however small it looks after an hour. */
const MEMORY_MB_PER_HOUR_MAX = 10;

/**
 * How fast memory grows in the last two thirds: the median of the slopes between any two samples, so that no single one
 * counts. What grows slowly is less than a quarter more at the end of any test.
 */
export function memorySlope(samples: readonly Sample[]): number {
  const rest = samples.slice(Math.floor(samples.length / 3));
  const slopes = rest.flatMap((one, index) =>
    rest.slice(index + 1).map((two) => (two.memoryMB - one.memoryMB) / (two.atSeconds - one.atSeconds)),
  );
  return round(median(slopes) * 3_600);
}

/** In a short test the same slope is only a few megabytes, which a busy machine makes by itself. */
export const isLeaking = (slope: number, minutes: number): boolean =>
  slope > MEMORY_MB_PER_HOUR_MAX && (slope * minutes * 2) / 3 / 60 > NOISE.memoryMB;

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
