// npm run mutate: makes small mistakes in the core, the engine, the stores and the supervision of processes, one at a
// time, and counts how many of them no test notices.
//
//   --room NAME    only this one: core, engine, store, process
//   --file PATH    only mutants of this file; may be given several times
//   --test PATH    only these tests, for a quick look: what others would notice survives. May be given several times
//   --sample       mutants of one file of the core, chosen by the seed
//   --seed N       for --sample (1)
//   --json         the last line is one object
//
// Prints every mutant that survived. Exits with 1 if the score of a room is below its threshold (rooms.ts).
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, relative } from "node:path";
import type { LogLevel } from "@stryker-mutator/api/core";
import { Stryker } from "@stryker-mutator/core";
import { ROOT } from "../fixtures/repository.ts";
import { conclude, optionsOf, refuse, say, wholeNumber } from "../run/suite.ts";
import { isApart, runApart } from "./apart.ts";
import { type Room, rooms, SAMPLE_SCORE_MIN, sampleOf } from "./rooms.ts";
import { scoreOf, sumOf, type Tally, tallyOf } from "./score.ts";

const values = optionsOf({
  room: { type: "string" },
  file: { type: "string", multiple: true },
  test: { type: "string", multiple: true },
  sample: { type: "boolean", default: false },
  seed: { type: "string", default: "1" },
  json: { type: "boolean", default: false },
});

/** A mutant without an end is given up after this, on top of what its tests took before. */
const TIMEOUT_MS = 10_000;

process.chdir(ROOT);
// What tests leave behind when their process is ended goes with it.
process.env.TMPDIR = mkdtempSync(join(tmpdir(), "belay-mutants-"));
// A test that gives up the rights of root for a moment still finds its own in there.
chmodSync(process.env.TMPDIR, 0o711);
process.once("exit", () => {
  try {
    rmSync(process.env.TMPDIR ?? "", { recursive: true, force: true });
  } catch {
    // A disk that a test has mounted, and was killed before it could take it away.
  }
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
const seed = wholeNumber(values.seed, "--seed");
const sampled = values.sample ? sampleOf(seed) : undefined;
const files = sampled === undefined ? values.file : [sampled];
const wanted = rooms().filter(({ name }) => (sampled === undefined ? (values.room ?? name) === name : name === "core"));
if (wanted.length === 0) refuse(`There is no room ${values.room}.`);
if (wanted.some(({ name }) => name === "process") && !isApart()) process.exit(await runApart(process.argv.slice(1)));
const tallies = new Map<Room, Tally>();
for (const room of wanted) {
  const tally = await mutate(room);
  tallies.set(room, tally);
  say(`${room.name}: ${scoreOf(tally)} % of ${tally.killed + tally.survived} noticed, ${tally.survived} survived`);
}
const all = sumOf([...tallies.values()]);
const missed = [...tallies].filter(([room, tally]) => scoreOf(tally) < thresholdOf(room));
for (const [room, tally] of missed) {
  say(`${room.name} has ${scoreOf(tally)} %; its threshold is ${thresholdOf(room)} %.`);
}
if (sampled !== undefined) say(`Replay it with: npm run mutate -- --sample --seed ${seed}`);
conclude(
  {
    ...{ suite: "mutate", score: scoreOf(all), ...all, mutants: all.killed + all.survived },
    ...(sampled === undefined ? {} : { seed, file: sampled }),
    rooms: Object.fromEntries([...tallies].map(([{ name }, tally]) => [name, { score: scoreOf(tally), ...tally }])),
  },
  { json: values.json, holds: missed.length === 0 },
);

/** A few files say nothing about a room, so those that were picked by hand have none. */
function thresholdOf({ scoreMin }: Room): number {
  if (sampled !== undefined) return SAMPLE_SCORE_MIN;
  return values.file === undefined && values.test === undefined ? scoreMin : 0;
}

async function mutate({ name, mutate: sources, tests: lookers }: Room): Promise<Tally> {
  const tests = lookers.filter((file) => values.test?.includes(file) ?? true);
  const chosen = files === undefined ? sources : sources.filter((file) => files.includes(file));
  if (chosen.length === 0) return { killed: 0, survived: 0, ignored: 0 };
  say(`${name}: ${chosen.length} files, looked at by ${tests.length} files of tests`);
  const mutants = await new Stryker({
    testRunner: "in-process",
    plugins: [join(import.meta.dirname, "in-process-runner.ts")],
    inProcess: { files: tests },
    mutate: [...chosen],
    // Texts are for people, or tags of unions, which the compiler checks.
    mutator: { excludedMutations: ["StringLiteral"] },
    // What is only used while a file is loaded would need a new process for each mutant.
    ignoreStatic: true,
    ignorePatterns: ["dist", "bench", "docs", "examples"],
    coverageAnalysis: "perTest",
    concurrency: availableParallelism(),
    reporters: process.stderr.isTTY ? ["progress"] : ["progress-append-only"],
    tempDirName: join(tmpdir(), name),
    timeoutMS: TIMEOUT_MS,
    allowConsoleColors: false,
    logLevel: "warn" as LogLevel,
  }).runMutationTest();
  for (const { status, fileName, location, mutatorName, replacement } of mutants) {
    if (status !== "Survived" && status !== "NoCoverage") continue;
    const { line, column } = location.start;
    say(`survived: ${relative(ROOT, fileName)}:${line}:${column} ${mutatorName} -> ${replacement ?? ""}`);
  }
  return tallyOf(mutants.map(({ status }) => status));
}
