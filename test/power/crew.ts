// Workers that let worlds go by at the same time, and what they have seen in all.
import { Worker } from "node:worker_threads";
import { editModules, type Mistake } from "../mistakes/mistake.ts";
import type { Finding } from "./check.ts";
import { SMALL_RESERVE } from "./mistakes.ts";
import type { Lie } from "./sim-disk.ts";
import type { Task, WorldReport } from "./task.ts";

export interface CrewOptions {
  readonly seed: number;
  readonly cuts: number;
  /** Mistakes in the source of the store. */
  readonly mistakes?: readonly Mistake[];
  readonly lies?: readonly Lie[];
  readonly workers?: number;
  /** Only this world. */
  readonly world?: number | undefined;
  /** Enough worlds with findings: one mistake usually has many. Default: all of them are counted. */
  readonly foundMax?: number;
  readonly progress?: (seen: Seen) => void;
  readonly found?: (found: Found) => void;
}

/** What was seen, in all. */
export interface Seen {
  cuts: number;
  acked: number;
  readonly moments: Map<string, number>;
  readonly distinct: Set<string>;
  readonly found: Found[];
}

/** A world in which something was wrong. */
export interface Found {
  readonly world: number;
  readonly findings: readonly Finding[];
}

const CUTS_PER_WORLD = 10;

export async function sendCrew(options: CrewOptions): Promise<Seen> {
  const { seed, cuts, mistakes = [], lies = [], workers = 2, world } = options;
  const seen: Seen = { cuts: 0, acked: 0, moments: new Map(), distinct: new Set(), found: [] };
  const end = world === undefined ? Math.ceil(cuts / CUTS_PER_WORLD) : world + 1;
  const crew = world === undefined ? Array.from({ length: Math.min(workers, end) }, (_, index) => index) : [world];
  const modules = editModules([SMALL_RESERVE, ...mistakes]);
  const errand = { seed, step: crew.length, end, cutsPerWorld: CUTS_PER_WORLD, modules, lies };
  const enough = new AbortController();
  const hear = (report: WorldReport): void => {
    note(seen, report);
    if (report.findings.length > 0) options.found?.(report);
    options.progress?.(seen);
    if (seen.found.length >= (options.foundMax ?? Number.POSITIVE_INFINITY)) enough.abort();
  };
  await Promise.all(crew.map((first) => work({ ...errand, first }, hear, enough.signal)));
  return seen;
}

function work(errand: Task, hear: (report: WorldReport) => void, enough: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("./power-worker.ts", import.meta.url), { workerData: errand });
    enough.addEventListener("abort", () => void worker.terminate());
    worker.on("message", hear);
    worker.on("error", reject);
    worker.on("exit", () => resolve());
  });
}

function note(seen: Seen, { world, cuts, acked, moments, digests, findings }: WorldReport): void {
  seen.cuts += cuts;
  seen.acked += acked;
  for (const moment of moments) seen.moments.set(moment, (seen.moments.get(moment) ?? 0) + 1);
  for (const digest of digests) seen.distinct.add(digest);
  if (findings.length > 0) seen.found.push({ world, findings });
}

/** How many findings there are of a kind. */
export const countOf = (seen: Seen, kind: Finding["kind"]): number =>
  seen.found.reduce((sum, { findings }) => sum + findings.filter((finding) => finding.kind === kind).length, 0);
