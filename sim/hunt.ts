// Lets the search loose on every known mistake. What it does not find is a hole in the search, not a triumph of the
// code.
import { availableParallelism } from "node:os";
import { editModules } from "../test/mistakes/mistake.ts";
import type { Bug } from "./bugs/bug.ts";
import { CORPUS } from "./bugs/corpus.ts";
import type { Focus } from "./schedule-options.ts";
import { type Answer, runTask } from "./tasks.ts";

export interface HuntOptions {
  readonly seed: number;
  readonly only?: string | undefined;
  /** One in so many of them, beginning with the `part`-th. */
  readonly sample?: number;
  readonly part?: number;
  readonly found: (name: string, by: string, ms: number) => void;
  readonly missed: (name: string, why: string) => void;
}

export interface Hunted {
  readonly known: number;
  readonly missed: readonly string[];
}

/** Schedules before a mistake counts as missed. Most are found by the first hundred; one takes some 16,000. */
const SEEDS_MAX = 60_000;
/** Some mistakes make the engine go round in circles. What a quick machine finds, a slow one must not miss for this. */
const LIMIT_MS = 300_000;
const SILENT_MS = 20_000;

export async function huntBugs({ seed, only, sample = 1, part = 0, found, missed }: HuntOptions): Promise<Hunted> {
  const bugs = CORPUS.filter(({ name }, index) =>
    only === undefined ? index % sample === part % sample : name === only,
  );
  if (bugs.length === 0) throw new RangeError(`there is no known mistake called ${only}`);
  const left = [...bugs];
  const names: string[] = [];
  const hunter = async (): Promise<void> => {
    for (let bug = left.shift(); bug !== undefined; bug = left.shift()) {
      const began = performance.now();
      try {
        const by = await huntOne(bug, seed);
        if (by === undefined) throw new Error("nothing was found");
        found(bug.name, by, performance.now() - began);
      } catch (error) {
        names.push(bug.name);
        missed(bug.name, error instanceof Error ? error.message : String(error));
      }
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, hunter));
  return { known: bugs.length, missed: names };
}

/** What gave it away; undefined if nothing did. Throws if that happens without the mistake as well. */
export async function huntOne(bug: Pick<Bug, "name" | "edits" | "focus">, seed: number): Promise<string | undefined> {
  let found: Extract<Answer, { readonly kind: "hunted" }> | undefined;
  const errand = { kind: "bug", modules: editModules([bug]), seed, seeds: SEEDS_MAX, focus: bug.focus } as const;
  const heard = (answer: Answer): void => {
    if (answer.kind === "hunted") found = answer;
  };
  // One that still made progress when time was over was only slow: that is a mistake missed, not one found.
  const ended = await runTask(errand, heard, { limitMs: LIMIT_MS, silenceMs: SILENT_MS });
  if (ended === "silent") return "no end: it goes round in circles";
  if (found?.seed !== undefined) await refuseIfBroken(found.seed, bug.focus);
  return found?.by;
}

/** A schedule that fails without the mistake proves nothing about it: the engine or the simulation has a fault. */
async function refuseIfBroken(seed: number, focus: Focus): Promise<void> {
  let message: string | undefined;
  const heard = (answer: Answer): void => {
    if (answer.kind === "searched") message = answer.found[0]?.violations[0]?.message;
  };
  await runTask({ kind: "seeds", from: seed, count: 1, focus }, heard, { silenceMs: SILENT_MS });
  if (message !== undefined) throw new Error(`Seed ${seed} fails without any mistake (focus ${focus}): ${message}`);
}
