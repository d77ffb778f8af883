// A process of the simulation: takes one errand, and answers with what it found. Loads the engine only after the
// modules with a known mistake, if there is one, are in place.
import { loadEdited } from "../test/mistakes/load-edited.ts";
import type { Focus } from "./schedule-options.ts";
import type { Answer, Task } from "./tasks.ts";

const say = (answer: Answer): void => void process.send?.(answer);

async function work(errand: Task): Promise<void> {
  if (errand.kind === "bug") loadEdited(errand.modules);
  if (errand.kind === "scopes") return exploreScopes(errand.ops, errand.share);
  const { searchSeeds } = await import("./search.ts");
  const progress = (done: number, hashes: readonly string[]): void => say({ kind: "progress", done, hashes });
  if (errand.kind === "seeds") {
    say({ kind: "searched", ...(await searchSeeds({ ...errand, progress })) });
    return;
  }
  say({ kind: "hunted", ...(await hunt(errand.seed, errand.seeds, errand.focus)) });
}

async function exploreScopes(ops: number, share: { readonly index: number; readonly of: number }): Promise<void> {
  const { callScopesUpTo, exploreScope, processScopesUpTo, scopesUpTo } = await import("./exhaustive.ts");
  // The walks over calls and processes begin with two things going on, and are wider by that.
  const all = [...scopesUpTo(ops), ...callScopesUpTo(ops - 2), ...processScopesUpTo(ops - 2)];
  const mine = all.filter((_, index) => index % share.of === share.index);
  let interleavings = 0;
  for (const [index, scope] of mine.entries()) {
    const result = await exploreScope(scope);
    interleavings += result.interleavings;
    for (const violation of result.violations) say({ kind: "broken", scope, violation });
    if (index % 8 === 0) say({ kind: "progress", done: index + 1 });
  }
  say({ kind: "explored", scopes: mine.length, interleavings });
}

/** Small scopes first: they are quick, and what they find is short. Then seeds. */
async function hunt(
  seed: number,
  seeds: number,
  focus: Focus,
): Promise<Omit<Extract<Answer, { readonly kind: "hunted" }>, "kind">> {
  const { callScopesUpTo, exploreScope, processScopesUpTo, scopesUpTo } = await import("./exhaustive.ts");
  const { searchSeeds } = await import("./search.ts");
  // Clocks, followers and the real loop are not in the small scopes.
  const apart = focus !== undefined && focus !== "processes";
  const small = focus === "processes" ? processScopesUpTo(2) : [...scopesUpTo(2), ...callScopesUpTo(1)];
  const scopes = apart ? [] : small;
  for (const scope of scopes) {
    const [violation] = (await exploreScope(scope)).violations;
    if (violation !== undefined) return { by: `${violation.rule} in { ${scope.join(", ")} }: ${violation.message}` };
  }
  const progress = (done: number): void => say({ kind: "progress", done });
  const { found } = await searchSeeds({ from: seed, count: seeds, foundMax: 1, focus, progress });
  const [first] = found;
  if (first === undefined) return { by: undefined };
  const [violation] = first.violations;
  return { by: `${violation?.rule} with seed ${first.seed}: ${violation?.message}`, seed: first.seed };
}

process.once("message", async (errand: Task) => {
  try {
    await work(errand);
  } catch (error) {
    say({ kind: "failed", message: String(error) });
  }
  process.disconnect();
});
