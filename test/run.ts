// Runs everything that must hold and ends with one line: how many passed, how many failed.
//
//   node test/run.ts check   format, lint, types and unit tests; under a minute
//   node test/run.ts fast    that, the integration tests, and a short sample of every slow suite (`npm test`)
//   node test/run.ts slow    the slow tests, and the slow suites at length (`npm run test:slow`)
//
// The samples have another seed every time. BELAY_TEST_SEED repeats one.
import type { FileTime } from "./run/count.ts";
import { runStep, type Step } from "./run/step.ts";

const SLOWEST_SHOWN = 30;

const [lane = "fast"] = process.argv.slice(2);
const seed = Number(process.env.BELAY_TEST_SEED ?? Math.floor(Date.now() / 1_000) % 1_000_000);

const program = (name: string, ...run: readonly string[]): Step => ({ kind: "program", name, run });
const tests = (name: string, of: string, ...only: readonly string[]): Step => ({ kind: "tests", name, lane: of, only });
const suite = (name: string, file: string, ...options: readonly (string | number)[]): Step => ({
  ...{ kind: "suite", name },
  run: [file, ...options.map(String), "--json"],
});

const lint = program("format and lint", "node_modules/@biomejs/biome/bin/biome", "ci", "--error-on-warnings", ".");
const types = program("types", "node_modules/typescript/bin/tsc", "-p", ".");
const unit = tests("unit tests", "unit");
/** Bubblewrap and Chromium, if the machine has none. */
const prepare = program("programs the tests need", "test/prepare.ts");

/** At least one real kill, power cut, process tree, mutant and schedule each. */
const samples: readonly Step[] = [
  suite("schedules", "sim/main.ts", "--schedules", 1_000, "--seed", seed),
  suite("known mistakes", "sim/main.ts", "--bugs", "--sample", 60, "--part", seed),
  suite("kill -9", "test/crash/main.ts", "--kills", 8, "--seed", seed),
  suite("power loss", "test/power/main.ts", "--cuts", 200, "--seed", seed),
  suite("damaged files", "test/damage/main.ts", "--rounds", 50, "--seed", seed),
  suite("store faults", "test/faults/main.ts", "--only-pairs", "--pairs", 300, "--seed", seed),
  suite("process trees", "test/trees/main.ts", "--rounds", 1, "--seed", seed),
];

/** The same of suites that mostly wait. */
const waitingSamples: readonly Step[] = [
  suite("mutants", "test/mutate/main.ts", "--sample", "--seed", seed),
  tests("soak", "slow", "test/soak/soak.slow.test.ts", "-t", "holds at the second rest"),
  suite("steady load with retention", "test/steady/main.ts", "--minutes", 0.5, "--rate", 40, "--seed", seed),
];

const suites: readonly Step[] = [
  suite("schedules", "sim/main.ts", "--schedules", 20_000, "--seed", seed),
  suite("small scopes, exhaustively", "sim/main.ts", "--exhaustive"),
  // A third of them each time: all take eleven minutes of two cores.
  suite("known mistakes", "sim/main.ts", "--bugs", "--sample", 3, "--part", seed),
  suite("kill -9", "test/crash/main.ts", "--kills", 60, "--seed", seed),
  suite("power loss", "test/power/main.ts", "--cuts", 2_000, "--seed", seed),
  suite("known mistakes of power loss", "test/power/main.ts", "--mistakes"),
  suite("damaged files", "test/damage/main.ts", "--rounds", 1_000, "--seed", seed),
  suite("store faults", "test/faults/main.ts", "--pairs", 2_000, "--seed", seed),
  suite("process trees", "test/trees/main.ts", "--rounds", 5, "--seed", seed),
  suite("process trees of a killed server", "test/trees/main.ts", "--rounds", 2, "--parent-kill", "--seed", seed),
  suite("renamed symbols, moved files, retitled tests", "test/rename/main.ts", "--seed", seed),
];

/** The same of those that mostly wait. */
const waitingSuites: readonly Step[] = [
  suite("mutants", "test/mutate/main.ts", "--sample", "--seed", seed + 1),
  suite("steady load with retention", "test/steady/main.ts", "--minutes", 2, "--seed", seed),
];

/** Tracks at a time: the first prints as it goes, and the others get the processor time that it leaves. */
const LANES: Readonly<Record<string, () => Promise<void>>> = {
  check: () => beside([lint, unit], [types]),
  fast: async () => {
    const prepared = runTrack([prepare], true);
    await Promise.all([
      runTrack([lint, unit], false)
        .then(() => prepared)
        .then(() => runTrack([tests("integration tests", "int")], false)),
      prepared.then(() => runTrack([types, ...samples], true)),
      prepared.then(() => runTrack(waitingSamples, true)),
    ]);
  },
  slow: async () => {
    await runTrack([prepare, program("runtimes the tests need", "test/runtimes/install.ts")], false);
    await beside([tests("slow tests", "slow")], suites, waitingSuites);
  },
};

const total = { passed: 0, failed: 0 };
const failures: string[] = [];
const times: FileTime[] = [];
const run = LANES[lane];
if (run === undefined) {
  print(`There is no lane ${lane}. There are: ${Object.keys(LANES).join(", ")}.`);
  process.exit(2);
}
print(`seed ${seed}`);
await run();
printSlowest();
if (failures.length > 0) print(`\nfailed (again: BELAY_TEST_SEED=${seed}):\n${failures.join("\n")}`);
print(`${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed === 0 ? 0 : 1;

async function beside(main: readonly Step[], ...background: readonly (readonly Step[])[]): Promise<void> {
  await Promise.all([runTrack(main, false), ...background.map((track) => runTrack(track, true))]);
}

/** One after the other. */
async function runTrack(steps: readonly Step[], background: boolean): Promise<void> {
  for (const step of steps) {
    if (!background) print(`\n▶ ${step.name}`);
    const { passed, failed, skipped = 0, failures: named, seconds, files } = await runStep(step, { background });
    const counted = `${passed} passed, ${failed} failed${skipped === 0 ? "" : `, ${skipped} skipped`}`;
    print(`${failed === 0 ? "✓" : "✗"} ${step.name}: ${counted} (${seconds.toFixed(1)} s)`);
    if (failed > 0) failures.push(step.name, ...named.map((name) => `  ${name}`));
    times.push(...files);
    total.passed += passed;
    total.failed += failed;
  }
}

function printSlowest(): void {
  if (times.length === 0) return;
  print(`\nthe ${SLOWEST_SHOWN} slowest test files, in seconds:`);
  for (const { file, ms } of times.toSorted((one, two) => two.ms - one.ms).slice(0, SLOWEST_SHOWN)) {
    print(`${(ms / 1_000).toFixed(1).padStart(7)}  ${file}`);
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
