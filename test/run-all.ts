// Runs everything that must hold, one step after the other, and ends with one line: how many passed, how many failed.
//
//   node test/run-all.ts check    format, lint, types, unit tests and house rules; under a minute
//   node test/run-all.ts all      everything
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { constants, setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "./house.ts";

interface Count {
  readonly passed: number;
  readonly failed: number;
  /** What failed, by name and with the first words of why: the end of a long output is all that is often kept. */
  readonly which?: readonly string[];
}

interface Step {
  readonly name: string;
  /** The file Node runs, and what it is told. A file that is not there is a failure. */
  readonly run: readonly [file: string, ...words: readonly string[]];
  readonly count: (ended: Ended) => Count;
  /** Only in `all`. */
  readonly slow?: true;
  /** Needs nothing but time: done beside the others, with what those leave of the machine. */
  readonly beside?: true;
}

interface Ended {
  readonly code: number;
  readonly stdout: string;
}

/** No step takes longer than this, unless it hangs. */
const STEP_MS_MAX = 12 * 60_000;
/** Enough to visit every kind of fault many times, and over in seconds. Long runs have their own command. */
const SCHEDULES = 2_000;
/** Of one failure, in the list at the end. */
const WHY_CHARS_MAX = 600;
const COMPILED = join(ROOT, "node_modules", ".cache", "compiled");
const REPORT = join(mkdtempSync(join(tmpdir(), "belay-test-")), "vitest.json");

const biome = "node_modules/@biomejs/biome/bin/biome";
const tsc = "node_modules/typescript/bin/tsc";
const vitest = "node_modules/vitest/vitest.mjs";
const reporters = ["--reporter=dot", "--reporter=json", `--outputFile.json=${REPORT}`];

/** Tests that start programs and take their time: not part of `check`. */
const WHOLE_HOUSE = [
  ...["test/e2e/", "test/examples.test.ts", "test/signals.test.ts", "sim/"],
  ...["src/cli/main.test.ts", "src/cli/hands-on.test.ts", "src/demo/", "src/store/sqlite/sqlite-store.test.ts"],
  ...["test/processes/", "test/trees/", "src/process/", "src/library/processes.test.ts"],
  ...["test/server/", "test/client/", "test/bridge/", "test/cli/", "test/acp/", "test/foreign/"],
  ...["control-commands", "looking-commands", "terminal-commands", "resting-store", "program"].map(
    (file) => `src/cli/${file}.test.ts`,
  ),
];
/** What goes wrong on purpose: crashes, faults, cut power, and whatever the failure map asks for. */
const TROUBLE = ["crash", "power", "damage", "faults", "soak", "failures", "mutate"].map((folder) => `test/${folder}/`);
const exclude = (place: string): string => `--exclude=${place.endsWith("/") ? `${place}**` : place}`;

const steps: readonly Step[] = [
  { name: "format and lint", run: [biome, "ci", "--error-on-warnings", "."], count: asOne },
  { name: "types", run: [tsc, "-p", "."], count: asOne, beside: true },
  { name: "what processes need", run: ["test/prepare-machine.ts"], count: asOne, slow: true },
  {
    name: "tests",
    run: [vitest, "run", ...reporters, ...[...WHOLE_HOUSE, ...TROUBLE].map(exclude)],
    count: fromVitest,
  },
  { name: "whole-house tests", run: [vitest, "run", ...reporters, ...WHOLE_HOUSE], count: fromVitest, slow: true },
  { name: "crashes, faults, power", run: [vitest, "run", ...reporters, ...TROUBLE], count: fromVitest, slow: true },
  {
    name: "simulation",
    run: ["sim/main.ts", "--schedules", `${SCHEDULES}`, "--json"],
    count: fromJsonLine,
    slow: true,
    beside: true,
  },
  {
    name: "small scopes, exhaustively",
    run: ["sim/main.ts", "--exhaustive", "--json"],
    count: fromJsonLine,
    slow: true,
    beside: true,
  },
  {
    name: "bug corpus, one in nine",
    run: ["sim/main.ts", "--bugs", "--sample", "9", "--json"],
    count: fromJsonLine,
    slow: true,
    beside: true,
  },
];

const [which = "all"] = process.argv.slice(2);
const total = { passed: 0, failed: 0 };
const notes: string[] = [];
const wanted = steps.filter((one) => which === "all" || one.slow === undefined);
await Promise.all([
  takeAll(wanted.filter((one) => one.beside === undefined)),
  takeAll(wanted.filter((one) => one.beside === true)),
]);
rmSync(join(REPORT, ".."), { recursive: true, force: true });
if (notes.length > 0) say(`\nfailed:\n${notes.join("\n")}`);
say(`${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed === 0 ? 0 : 1;

/** One after the other. */
async function takeAll(some: readonly Step[]): Promise<void> {
  for (const step of some) {
    say(`\n▶ ${step.name}`);
    const began = performance.now();
    const { passed, failed, which: names = [] } = await take(step);
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    say(`${failed === 0 ? "✓" : "✗"} ${step.name}: ${passed} passed, ${failed} failed (${seconds} s)`);
    if (failed > 0) notes.push(step.name, ...names.map((name) => `  ${name}`));
    total.passed += passed;
    total.failed += failed;
  }
}

async function take(step: Step): Promise<Count> {
  const [file, ...words] = step.run;
  if (!existsSync(join(ROOT, file))) {
    say(`${file} does not exist.`);
    return { passed: 0, failed: 1 };
  }
  if (step.beside === undefined) rmSync(REPORT, { force: true });
  const ended = await run([file, ...words], step.beside === true);
  const counted = step.count(ended);
  // A step that ended badly has failed, whatever it has counted.
  return ended.code !== 0 && counted.failed === 0 ? { ...counted, failed: 1 } : counted;
}

function run(words: readonly string[], beside: boolean): Promise<Ended> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, words, {
      cwd: ROOT,
      stdio: ["ignore", "pipe", "inherit"],
      // Most of the tests start programs, and each of those compiles the same files.
      env: { ...process.env, NODE_COMPILE_CACHE: COMPILED },
      signal: AbortSignal.timeout(STEP_MS_MAX),
      killSignal: "SIGKILL",
    });
    if (beside && child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
    let stdout = "";
    child.stdout.setEncoding("utf8");
    child.stdout.on("data", (text: string) => {
      stdout += text;
      if (!beside) process.stdout.write(text);
    });
    child.on("error", (error) => {
      say(error.name === "AbortError" ? "It took too long and was stopped." : String(error));
      resolve({ code: 1, stdout });
    });
    child.on("close", (code) => {
      if (beside && code !== 0) say(stdout);
      resolve({ code: code ?? 1, stdout });
    });
  });
}

function asOne({ code }: Ended): Count {
  return code === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
}

function fromVitest(): Count {
  if (!existsSync(REPORT)) return { passed: 0, failed: 1 };
  const report: unknown = JSON.parse(readFileSync(REPORT, "utf8"));
  const files = listIn(report, "testResults");
  // A file that could not be loaded has no tests that could fail.
  const broken = files.filter(
    (one) => field(one, "status") === "failed" && listIn(one, "assertionResults").length === 0,
  );
  return {
    passed: numberIn(report, "numPassedTests"),
    failed: numberIn(report, "numFailedTests") + broken.length,
    which: [
      ...broken.map((file) => named(file, "name", field(file, "message"))),
      ...files
        .flatMap((file) => listIn(file, "assertionResults"))
        .filter((test) => field(test, "status") === "failed")
        .map((test) => named(test, "fullName", listIn(test, "failureMessages")[0])),
    ],
  };
}

function named(value: unknown, name: string, why: unknown): string {
  return `${field(value, name)}: ${`${why}`.slice(0, WHY_CHARS_MAX).replaceAll("\n", "\n    ")}`;
}

/** The suites say how it went in their last line; what they found is what failed. */
function fromJsonLine(ended: Ended): Count {
  const line = ended.stdout.trimEnd().split("\n").at(-1) ?? "";
  if (!line.startsWith("{")) return { passed: 0, failed: 1 };
  const said: unknown = JSON.parse(line);
  if (field(said, "suite") === "bugs") {
    const found = numberIn(said, "found");
    return { passed: found, failed: numberIn(said, "known") - found };
  }
  const failed = numberIn(said, "violations");
  return { passed: failed === 0 ? 1 : 0, failed };
}

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}

function listIn(value: unknown, name: string): readonly unknown[] {
  const list = field(value, name);
  return Array.isArray(list) ? list : [];
}

function numberIn(value: unknown, name: string): number {
  const number = field(value, name);
  if (typeof number !== "number") throw new Error(`${name} is not a number in ${JSON.stringify(value)}`);
  return number;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
