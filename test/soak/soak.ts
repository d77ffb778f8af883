// A soak: work, rest, the same kind of work again, rest; and what there is more of at the second rest.
import { globalAgent } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { editModules, type Mistake } from "../mistakes/mistake.ts";
import { progress } from "../run/suite.ts";
import type { ActionContext, Tally } from "./actions.ts";
import { chanceOf } from "./chance.ts";
import { watcher } from "./clients.ts";
import { openConnections } from "./connections.ts";
import type { Leak, Level } from "./level.ts";
import { deedList, fault, lane, type NextDeed, nemesis } from "./load.ts";
import { SoakServer } from "./server.ts";
import { closeAll, firstRest, type Patience, restAgain } from "./server-rest.ts";
import type { Sample } from "./slope.ts";

export interface SoakOptions {
  readonly seed: number;
  /** With which the server runs: small caches, and known mistakes. */
  readonly mistakes: readonly Mistake[];
  /** How much: by the clock, or so many times each deed. */
  readonly work: { readonly kind: "minutes"; readonly minutes: number } | Rounds;
  readonly lanes: number;
  /** How long it may take to come to rest, before what is left counts. */
  readonly restMs: number;
}

export interface Rounds {
  readonly kind: "rounds";
  readonly rounds: number;
  /** By name; each is done once in each half. */
  readonly faults: readonly string[];
}

export interface Soaked {
  readonly tally: Tally;
  readonly events: number;
  readonly leaks: readonly Leak[];
  readonly first: Level;
  readonly second: Level;
  /** Runs between the two rests. */
  readonly runsBetween: number;
  /** While the load was on, after the warm-up. */
  readonly rss: readonly Sample[];
  readonly heap: readonly Sample[];
  readonly descriptors: readonly Sample[];
  /** What the server left behind when it had ended, by command. */
  readonly survivors: readonly string[];
}

/** Of the whole time: until then caches fill, code is compiled and memory finds its size. */
const WARM_SHARE = 1 / 3;

/** In runs and not in minutes: they are what fills caches. Without processes among them, RSS was level before that. */
const WARM_RUNS_MIN = 3_000;

const SAMPLE_MS = 3_000;
const FAULT_EVERY_MS = 7_000;

/** Between two deeds of a lane, so that the load is steady and not whatever this machine can do at most. */
const PACE_MS = 20;

const MINUTE_MS = 60_000;
const MB = 1_000_000;

export async function soak(options: SoakOptions): Promise<Soaked> {
  const server = await SoakServer.start(editModules(options.mistakes));
  const tally: Tally = { runs: 0, cancels: 0, processes: 0, sessions: 0, faults: 0, refused: 0, wrong: [] };
  const watch: Watch = { rss: [], heap: [], descriptors: [] };
  let events = 0;
  const half = async (which: "warm" | "main"): Promise<void> => {
    events += await work({ server, options, tally, which, watch });
  };
  const patience: Patience = { depth: options.work.kind === "rounds" ? "objects" : "memory", restMs: options.restMs };
  let ended = false;
  try {
    await half("warm");
    const first = await firstRest(server, patience);
    const runsBefore = tally.runs;
    await half("main");
    const runsBetween = tally.runs - runsBefore;
    const { level: second, leaks } = await restAgain(server, first, { runs: runsBetween, ...patience });
    ended = true;
    const survivors = await server.end();
    return { ...{ tally, events, leaks, first, second, runsBetween, survivors }, ...watch };
  } finally {
    if (!ended) await server.end();
  }
}

interface Watch {
  readonly rss: Sample[];
  readonly heap: Sample[];
  readonly descriptors: Sample[];
}

interface Half {
  readonly server: SoakServer;
  readonly options: SoakOptions;
  readonly tally: Tally;
  readonly which: "warm" | "main";
  readonly watch: Watch;
}

/** One half of the work, until everything of it is closed and everybody has left. Answers the events that were told. */
async function work({ server, options, tally, which, watch }: Half): Promise<number> {
  const chance = chanceOf(options.seed * 2 + (which === "warm" ? 0 : 1));
  const doors = await openConnections(server.note, server.token);
  const stage: ActionContext = { server, doors, chance, tally };
  const watching = watcher(stage);
  const over = new AbortController();
  const aside =
    options.work.kind === "minutes"
      ? [
          nemesis(stage, FAULT_EVERY_MS, over.signal),
          ...(which === "main" ? [sampling(server, watch, over.signal)] : []),
        ]
      : [faultsInTurn(stage, options.work.faults)];
  const next = namesOf(options, which, stage, watch);
  const lanes = Array.from({ length: options.lanes }, () => lane({ ...stage, chance: chance.fork() }, next));
  await Promise.all(lanes);
  over.abort();
  await Promise.all(aside);
  await closeAll(server);
  await watching.leave();
  await doors.close();
  // Connections that are kept for the next request are no company.
  globalAgent.destroy();
  return watching.heard();
}

/** What the lanes take next. By the clock it never runs out; else it is a list. */
function namesOf({ work, seed }: SoakOptions, which: Half["which"], stage: ActionContext, watch: Watch): NextDeed {
  const { tally, chance } = stage;
  let names: string[] = [];
  if (work.kind === "rounds") {
    names = deedList(work.rounds, chance);
    return async () => names.pop();
  }
  const share = which === "warm" ? WARM_SHARE : 1 - WARM_SHARE;
  const until = performance.now() + share * work.minutes * MINUTE_MS;
  return async () => {
    await pause(PACE_MS);
    const over = performance.now() - until;
    // A machine on which that many take longer than the whole soak may is too slow for more warming up.
    const warm = which === "main" || tally.runs >= WARM_RUNS_MIN || over > work.minutes * MINUTE_MS;
    if (over > 0 && warm) return undefined;
    if (names.length === 0) names = deedList(1, chance);
    const { runs, sessions, cancels, faults, wrong } = tally;
    const left = Math.ceil((until - performance.now()) / MINUTE_MS);
    progress(
      `seed ${seed}, ${which}: ${runs} runs in ${sessions} sessions, ${cancels} cancels, ${faults} faults, ` +
        `${[`${wrong.length} wrong`, ...wrong.slice(-1)].join(": ")}, ` +
        `RSS ${inMB(watch.rss)} MB, heap ${inMB(watch.heap)} MB; ${left} min left`,
    );
    return names.pop();
  };
}

const inMB = (samples: readonly Sample[]): number => Math.round((samples.at(-1)?.value ?? 0) / MB);

async function faultsInTurn(stage: ActionContext, names: readonly string[]): Promise<void> {
  for (const name of names) await fault(stage, name);
}

async function sampling(server: SoakServer, watch: Watch, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    const { heapBytes } = await server.memory();
    const { rssBytes, descriptors } = server.outside();
    const atMs = performance.now();
    watch.rss.push({ atMs, value: rssBytes });
    watch.heap.push({ atMs, value: heapBytes });
    watch.descriptors.push({ atMs, value: descriptors });
    await pause(SAMPLE_MS, undefined, { signal: over }).catch(() => {});
  }
}
