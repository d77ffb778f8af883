// The operating system of a simulation: children that stand still until the scheduler moves them, and that outlive the
// life of the engine that has started them for as long as an operating system would let them.
//
// Invariants
// 1. A life that is over starts nothing and stops nothing any more.
import type { ProcessId } from "../src/core/model/ids.ts";
import type { Clock } from "../src/ports/clock.ts";
import type { Spawner, SpawnRequest } from "../src/ports/spawner.ts";
import { Gate } from "../src/testing/gate.ts";
import type { ScriptedChild } from "../src/testing/scripted-child.ts";
import { type ChildScript, ScriptedSpawner } from "../src/testing/scripted-spawner.ts";

/** What a child is like; `late`: it starts when the scheduler says so. */
export type ChildPlan = Omit<ChildScript, "startsAfter"> & { readonly late?: boolean };

/** A child that has been asked for and does not exist yet. */
interface Starting {
  readonly life: number;
  readonly request: SpawnRequest;
  readonly gate: Gate;
}

export class ProcessWorld {
  readonly children = new Map<ProcessId, { readonly child: ScriptedChild; readonly life: number }>();
  /** What could not be started. */
  readonly refused = new Set<ProcessId>();
  /** What the next child is like. */
  plan: (request: SpawnRequest) => ChildPlan = () => ({});
  /** Somebody looks at every child that comes into being. */
  born: (child: ScriptedChild) => void = () => {};
  #starting: Starting[] = [];
  #life = 0;

  /** The spawner of one life. */
  spawner(life: number, clock: Clock): Spawner {
    this.#life = life;
    const scripted = new ScriptedSpawner({
      clock,
      script: (request) => this.#script(life, request),
      started: (child) => this.#started(life, child),
    });
    return {
      tier: scripted.tier,
      mechanism: scripted.mechanism,
      spawn: async (request) => {
        const child = await scripted.spawn(request);
        return life === this.#life ? child : new Promise(() => {});
      },
      output: (id) => scripted.output(id),
      close: () => scripted.close(),
    };
  }

  /** Those that can be let into being. */
  get starting(): readonly Starting[] {
    return this.#starting.filter(({ life, request, gate }) => {
      return life === this.#life && !gate.isOpen && request.signal?.aborted !== true;
    });
  }

  /** Those that go on and whose life does too. */
  get going(): readonly ScriptedChild[] {
    const going: ScriptedChild[] = [];
    for (const { child, life } of this.children.values()) {
      if (life === this.#life && child.end === undefined) going.push(child);
    }
    return going;
  }

  /** Those of them that can still do something: a dying child only dies. */
  get running(): readonly ScriptedChild[] {
    return this.going.filter(({ dying }) => !dying);
  }

  /** Whether anything of it exists that somebody could have ended. */
  lives(id: ProcessId): boolean {
    const child = this.children.get(id)?.child;
    return child?.alive === true && child.manner !== "escapes";
  }

  get survivors(): readonly ProcessId[] {
    return [...this.children.keys()].filter((id) => this.lives(id));
  }

  /** The worker has vanished. `die`: the kernel ends its trees with it. `survive`: they wait for the next sweep. */
  crashed(how: "die" | "survive"): void {
    this.#life = 0;
    this.#starting = [];
    if (how === "die") this.sweep();
  }

  /** Whatever earlier lives have left is ended. */
  sweep(): void {
    for (const { child } of this.children.values()) {
      if (child.dying) child.verifyDeath();
      else if (child.end === undefined) child.die("SIGKILL");
    }
  }

  #started(life: number, child: ScriptedChild): void {
    if (life !== this.#life) return;
    this.children.set(child.request.id, { child, life });
    this.born(child);
  }

  #script(life: number, request: SpawnRequest): ChildScript {
    const { late = false, ...script } = this.plan(request);
    if (script.refused !== undefined) this.refused.add(request.id);
    if (!late) return script;
    const gate = new Gate();
    this.#starting.push({ life, request, gate });
    return { ...script, startsAfter: gate };
  }
}
