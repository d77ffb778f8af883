// A spawner without an operating system: the test decides when a child starts, what it prints, and how it ends.
import { type ControlCode, ControlError } from "../core/errors.ts";
import type { ProcessId } from "../core/model/ids.ts";
import type { Clock } from "../ports/clock.ts";
import type { Mechanism, OutputFile, Spawner, SpawnRequest, Tier } from "../ports/spawner.ts";
import type { Gate } from "./gate.ts";
import { type DeathVerified, type ExitBehavior, ScriptedChild } from "./scripted-child.ts";

/** The behavior of a child. By default it starts at once and dies when it is stopped. */
export interface ChildScript {
  readonly whenStopped?: ExitBehavior;
  /** Its death is verified late, or never. */
  readonly deathVerified?: DeathVerified;
  /** It starts once the gate is open; never, if it is stopped before. */
  readonly startsAfter?: Gate;
  /** It cannot be started. */
  readonly refused?: Extract<ControlCode, "not_started" | "uncontained" | "invalid">;
}

export interface ScriptedSpawnerOptions {
  readonly clock: Clock;
  /** The behavior of children for which nothing was planned. */
  readonly script?: (request: SpawnRequest) => ChildScript;
  /** Called with each child in the tick in which it starts. */
  readonly started?: (child: ScriptedChild) => void;
  /** The grace period of a child whose request names none. Default 1500. */
  readonly graceMs?: number;
}

export function scriptedSpawner(options: ScriptedSpawnerOptions): ScriptedSpawner {
  return new ScriptedSpawner(options);
}

export class ScriptedSpawner implements Spawner {
  readonly tier: Tier = "namespace";
  readonly mechanism: Mechanism = "bubblewrap";
  /** Every child that has started, in order. */
  readonly children: ScriptedChild[] = [];
  readonly #options: ScriptedSpawnerOptions;
  readonly #planned: ChildScript[] = [];
  readonly #waiting: ((child: ScriptedChild) => void)[] = [];
  readonly #unclaimed: ScriptedChild[] = [];
  readonly #closed = new AbortController();

  constructor(options: ScriptedSpawnerOptions) {
    this.#options = options;
  }

  /** Sets the behavior of the next child. */
  plan(script: ChildScript): void {
    this.#planned.push(script);
  }

  /** The next child that starts. Each is returned once. */
  next(): Promise<ScriptedChild> {
    const child = this.#unclaimed.shift();
    return child === undefined ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve(child);
  }

  async spawn(request: SpawnRequest): Promise<ScriptedChild> {
    const { clock, script, graceMs = GRACE_MS } = this.#options;
    const planned = this.#planned.shift() ?? script?.(request) ?? {};
    const { whenStopped: manner = "dies", deathVerified, startsAfter, refused } = planned;
    const over = [this.#closed.signal, ...(request.signal === undefined ? [] : [request.signal])];
    // Like a real spawner, this does not start a child in the tick of its request if it may be stopped first.
    await (startsAfter === undefined ? undefined : Promise.race([startsAfter.opened, ...over.map(aborted)]));
    if (over.some((signal) => signal.aborted)) {
      throw new ControlError("not_started", `${request.id} was not started: it was stopped before it existed.`);
    }
    if (refused !== undefined) throw new ControlError(refused, `${request.id} was not started: the test says so.`);
    const { tier, mechanism, children } = this;
    const pid = FIRST_PID + children.length;
    const child = new ScriptedChild({ request, clock, pid, tier, mechanism, manner, deathVerified, graceMs });
    children.push(child);
    this.#options.started?.(child);
    (this.#waiting.shift() ?? ((one) => this.#unclaimed.push(one)))(child);
    return child;
  }

  async output(id: ProcessId): Promise<OutputFile | undefined> {
    return this.children.find((child) => child.request.id === id)?.output;
  }

  async close(): Promise<void> {
    this.#closed.abort();
    for (const child of this.children) child.stop(0);
    await Promise.all(this.children.map((child) => child.ended));
  }
}

const GRACE_MS = 1_500;
const FIRST_PID = 1_001;

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
