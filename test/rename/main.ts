// npm run rename-check [-- --seed S] [--quick] [--keep] [--json]: renames ten symbols, moves ten files and retitles ten
// tests in a copy of the repository, and runs every suite on it: all must still run, and find the same known mistakes.
// --quick: types, known mistakes and lint rules only, so that many seeds can be tried.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { CORPUS } from "../../sim/bugs/corpus.ts";
import { currentMarks } from "../mistakes/mistake.ts";
import { conclude, optionsOf, say, wholeNumber } from "../run/suite.ts";
import { Choice } from "./choice.ts";
import { Copy } from "./copy.ts";
import { canMove, moveFiles } from "./moved-files.ts";
import { renameSymbols } from "./renamed-symbols.ts";
import { retitleTests } from "./retitled-tests.ts";

const SYMBOLS = { marked: 6, anywhere: 4 };
const FILES = { marked: 5, anywhere: 5 };
const TITLES = 10;
/** Known mistakes in files that were renamed in or moved, which the simulation then looks for. */
const HUNTED = 6;

const values = optionsOf({
  seed: { type: "string", default: "1" },
  quick: { type: "boolean", default: false },
  keep: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
});
const seed = wholeNumber(values.seed, "--seed");
const choice = new Choice(seed);
const copy = new Copy();
const marked = new Set([...currentMarks().names].map((mark) => currentMarks().place(mark).path));

const renamed = renameSymbols({ root: copy.root, choice, ...SYMBOLS });
copy.apply(renamed.changes);
const retitled = retitleTests(copy.sources(), choice, TITLES);
copy.apply(retitled.changes);
const sources = copy.sources();
const movable = sources.map(({ path }) => path).filter((path) => canMove(copy.root, path));
const moved = [
  ...choice.some(
    movable.filter((path) => marked.has(path)),
    FILES.marked,
  ),
  ...choice.some(
    movable.filter((path) => !marked.has(path)),
    FILES.anywhere,
  ),
];
moveFiles(copy.root, moved, sources);
say(`seed ${seed}; the copy is ${copy.root}`);
for (const symbol of renamed.symbols) say(`renamed ${symbol}`);
for (const path of moved) say(`moved ${path}`);
for (const title of retitled.titles) say(`retitled ${title}`);

const touched = new Set([...moved, ...renamed.changes.keys()]);
const hunted = choice.some(
  CORPUS.filter(({ name, edits }) =>
    Object.keys(edits).some((label) =>
      touched.has(currentMarks().place(label === "" ? name : `${name}:${label}`).path),
    ),
  ),
  HUNTED,
);
const failed: string[] = [];
const vitest = "node_modules/vitest/vitest.mjs";
run("types", "node_modules/typescript/bin/tsc", "-p", ".");
run(
  "known mistakes apply, failure map",
  vitest,
  "run",
  "--project",
  "unit",
  "test/mistakes",
  "test/failures/failure-map",
);
run("lint rules", vitest, "run", "--project", "unit", "test/rules/banned-calls", "test/rules/import-direction");
if (!values.quick) runSuites();
if (!values.keep && failed.length === 0) copy.remove();
if (failed.length > 0) say(`Replay it with: npm run rename-check -- --seed ${seed}`);
conclude(
  {
    ...{ suite: "rename", seed, symbols: renamed.symbols.length, files: moved.length, titles: retitled.titles.length },
    ...{ hunted: hunted.length, failed },
  },
  { json: values.json, holds: failed.length === 0 && renamed.symbols.length >= 8 && moved.length === 10 },
);

function runSuites(): void {
  for (const { name } of hunted) run(`finds ${name}`, "sim/main.ts", "--bugs", "--only", name, "--json");
  run("schedules", "sim/main.ts", "--schedules", "200", "--json");
  run("mistakes of ACP", vitest, "run", "--project", "slow", "test/acp/mistakes", "-t", "leaving-cancels|has none");
  run("mistakes of store faults", vitest, "run", "--project", "slow", "test/faults/mistakes", "-t", "fault-swallowed");
  run("mistakes of power loss", vitest, "run", "--project", "slow", "test/power/power", "-t", "commit-not-heard");
  run("mistakes of kill -9", "test/crash/hunt-all.ts", "--only", "migration-in-steps");
  run("mutants", "test/mutate/main.ts", "--sample", "--seed", `${seed}`, "--json");
  run("kill -9", "test/crash/main.ts", "--kills", "8", "--json");
  run("process trees", "test/trees/main.ts", "--rounds", "1", "--json");
  run("soak", vitest, "run", "--project", "slow", "test/soak/soak", "-t", "holds at the second rest");
}

/** In the copy, with the Node that runs this. */
function run(name: string, ...words: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { cwd: copy.root, encoding: "utf8" });
  say(`${status === 0 ? "✓" : "✗"} ${name}`);
  if (status === 0) return;
  failed.push(name);
  say(`${stdout}\n${stderr}`.slice(-4_000));
  say(`in ${join(copy.root, words[0] ?? "")}`);
}
