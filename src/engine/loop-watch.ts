// Detects a blocked event loop while work is live. Code that blocks, or loops over its own promises, cannot be stopped
// from its own thread; it is detected from another thread, and named.
//
// Invariants
// 1. The thread decides whether the loop was blocked. This side only counts beats, and keeps the names current.
// 2. Nothing here keeps a program alive, and a program without threads works without it.
import { Worker } from "node:worker_threads";
import type { RunId, SessionId } from "../core/model/ids.ts";
import type { BlockedExplained } from "../core/read/explained.ts";
import type { Clock } from "../ports/clock.ts";
import type { Notify } from "../ports/hooks.ts";
import { workerFile } from "../system/worker-file.ts";
import { BEAT_MS, WatchMemory } from "./loop-watch-memory.ts";

/** A turn or call that runs code of an agent or a tool. */
export interface Watched {
  readonly sessionId: SessionId;
  readonly runId: RunId;
  readonly name: string;
  /** Where it stands among what is live; -1 while it is not. */
  liveAt: number;
  /** The place of its name in the shared memory; 0: it has none. */
  namedAt: number;
}

/** The data of the thread. `form`: the format of the line it writes. */
export interface WatchData {
  readonly shared: SharedArrayBuffer;
  readonly form: "text" | "json";
}

/** The part of a thread that is used here. */
export interface Watcher {
  terminate(): unknown;
}

/** Undefined: no thread can be started here. */
export type StartWatch = (shared: SharedArrayBuffer) => Watcher | undefined;

interface Parts {
  readonly clock: Clock;
  readonly start: StartWatch;
  /** The loop turns again after `ms`. `works`: the work that was entered last, otherwise all live work. */
  readonly blocked: (works: readonly Watched[], ms: number) => void;
}

export class LoopWatch {
  readonly #parts: Parts;
  readonly #memory = new WatchMemory();
  /** Live work, in no order. An array, not a set, for the reason given in `unanswered-batches.ts`. */
  readonly #live: Watched[] = [];
  /** The work whose name is in each slot. */
  readonly #places: (Watched | undefined)[] = [];
  /** The live work that is listed, for the case that none was entered since. */
  #listed: readonly Watched[] = [];
  #entered: Watched | undefined = undefined;
  #thread: Watcher | undefined = undefined;
  #phase: "unused" | "watching" | "closed" = "unused";
  #clearTimer: (() => void) | undefined = undefined;
  #beatAt = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Code of this work is about to run for the first time. */
  began(work: Watched): void {
    if (work.liveAt === -1) work.liveAt = this.#live.push(work) - 1;
    if (this.#phase === "unused") {
      this.#phase = "watching";
      this.#thread = this.#parts.start(this.#memory.shared);
    }
    if (this.#clearTimer === undefined && this.#thread !== undefined) this.#beat();
    this.entered(work);
  }

  /** Code of this work continues after a promise of Belay's. */
  entered(work: Watched): void {
    if (this.#thread === undefined) return;
    if (this.#memory.blocked) this.#report();
    if (this.#entered === work) return;
    this.#entered = work;
    this.#memory.enter(this.#placeOf(work));
  }

  #placeOf(work: Watched): number {
    if (work.namedAt !== 0 && this.#places[work.namedAt] === work) return work.namedAt;
    work.namedAt = this.#memory.name(nameOf(work));
    this.#places[work.namedAt] = work;
    return work.namedAt;
  }

  /** No code of it runs any more. */
  ended(work: Watched): void {
    const { liveAt } = work;
    if (liveAt === -1) return;
    work.liveAt = -1;
    const last = this.#live.pop();
    if (last === undefined || last === work) return;
    this.#live[liveAt] = last;
    last.liveAt = liveAt;
  }

  close(): void {
    this.#phase = "closed";
    this.#clearTimer?.();
    this.#thread?.terminate();
    this.#thread = undefined;
  }

  #beat(): void {
    if (this.#memory.blocked) this.#report();
    const live = this.#live.length > 0;
    this.#beatAt = this.#parts.clock.elapsed();
    this.#memory.beat(live);
    this.#entered = undefined;
    this.#listed = this.#live.slice(0, NAMED_MAX);
    this.#memory.list(this.#listed.map(nameOf).join(", "));
    this.#clearTimer = live ? this.#parts.clock.after(BEAT_MS, () => this.#beat(), "idle") : undefined;
  }

  #report(): void {
    this.#memory.blocked = false;
    this.#parts.blocked(
      this.#entered === undefined ? this.#listed : [this.#entered],
      this.#parts.clock.elapsed() - this.#beatAt,
    );
  }
}

const nameOf = ({ sessionId, runId, name }: Watched): string => `${name} of ${runId} in ${sessionId}`;

/** Maximum number of names if none was entered since the last beat. */
const NAMED_MAX = 8;

interface WatchedEngine {
  readonly clock: Clock;
  readonly notify: Notify;
  /** The session in memory. */
  readonly lane: (
    session: SessionId,
  ) => { blocked: ({ readonly runId: RunId } & BlockedExplained) | undefined } | undefined;
}

/** Reports what blocked the event loop in a notice, and in the explanation of its session. */
export function loopWatch(
  start: StartWatch | undefined,
  { clock, notify, lane: laneOf }: WatchedEngine,
): LoopWatch | undefined {
  if (start === undefined) return undefined;
  const blocked = (works: readonly Watched[], elapsedMs: number): void => {
    const ms = Math.round(elapsedMs);
    for (const { sessionId, runId, name } of works) {
      const lane = laneOf(sessionId);
      if (lane !== undefined) lane.blocked = { runId, work: name, ms, at: clock.now() };
    }
    const named = works.map(({ sessionId, runId, name }) => ({ sessionId, runId, work: name }));
    notify({ type: "blocked", works: named, ms });
  };
  return new LoopWatch({ clock, start, blocked });
}

/** Undefined: no thread can be started here, as in a bundle that has only one file. */
export function startWatcher(form: WatchData["form"], shared: SharedArrayBuffer): Watcher | undefined {
  const data: WatchData = { shared, form };
  try {
    const worker = new Worker(workerFile("loop-watch-thread", import.meta.url), {
      workerData: data,
      execArgv: [],
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 },
    });
    worker.unref();
    // Without its module the thread ends at once, and the loop is not watched.
    worker.on("error", () => {});
    return worker;
  } catch {
    return undefined;
  }
}
