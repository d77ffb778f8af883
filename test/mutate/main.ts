// npm run mutate: makes small mistakes in the core, the engine, the stores and the supervision of processes, one at a
// time, and counts how many of them no test notices.
//
//   --room NAME    only this one: core, engine, store, process
//   --file PATH    only mutants of this file; may be given several times
//   --test PATH    only these tests, for a quick look: what others would notice survives. May be given several times
//   --survivors F  writes what survived and has not been looked at to this file, ready to be judged
//   --json         the last line is one object
//
// Exits with 1 if a promised score is missed. The result has a mark for each that survived: mutate.test.ts asks of the
// published ones that somebody has looked at them (looked-at.json).
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, relative } from "node:path";
import type { LogLevel } from "@stryker-mutator/api/core";
import { Stryker } from "@stryker-mutator/core";
import { ROOT } from "../house.ts";
import { conclude, optionsOf, refuse, say } from "../suite.ts";
import { isApart, runApart } from "./apart.ts";
import { filesOf, type Hunt, type Room, rooms } from "./rooms.ts";
import { scoreOf, sumOf, type Tally, tallyOf } from "./score.ts";
import { compare, markOf, readLookedAt, type Survivor, survivorOf } from "./survivor.ts";

const values = optionsOf({
  room: { type: "string" },
  file: { type: "string", multiple: true },
  test: { type: "string", multiple: true },
  survivors: { type: "string" },
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
const lookedAt = readLookedAt();
const wanted = rooms().filter(({ name }) => values.room === undefined || values.room === name);
if (wanted.length === 0) refuse(`There is no room ${values.room}.`);
if (wanted.some(({ name }) => name === "process") && !isApart()) process.exit(await runApart(process.argv.slice(1)));
const tallies = new Map<Room, Tally>();
const survivors: Survivor[] = [];
for (const room of wanted) {
  const found = [await mutate(room.name, room)];
  if (room.besides !== undefined) found.push(await mutate(room.name, room.besides));
  const tally = sumOf(found.map((one) => one.tally));
  tallies.set(room, tally);
  survivors.push(...found.flatMap((one) => one.alive));
  say(`${room.name}: ${scoreOf(tally)} % of ${tally.killed + tally.survived} noticed, ${tally.survived} survived`);
}
const { fresh, gone } = compare(survivors, lookedAt);
for (const one of fresh) say(`not looked at: ${one.file}: ${one.line}\n  ${one.original} -> ${one.replacement}`);
if (values.file === undefined && values.test === undefined) {
  for (const one of gone.filter(({ file }) => wanted.some((room) => filesOf(room).includes(file)))) {
    say(`gone, so strike it off: ${one.file}: ${one.line}\n  ${one.original} -> ${one.replacement}`);
  }
}
if (values.survivors !== undefined) {
  writeFileSync(
    values.survivors,
    `${JSON.stringify(
      fresh.map((one) => ({ ...one, why: "" })),
      null,
      1,
    )}\n`,
  );
}
const all = sumOf([...tallies.values()]);
const missed = [...tallies].filter(([{ scoreMin = 0 }, tally]) => scoreOf(tally) < scoreMin);
for (const [{ name, scoreMin }, tally] of missed)
  say(`${name} has ${scoreOf(tally)} %, and ${scoreMin} % are promised.`);
conclude(
  {
    ...{ suite: "mutate", score: scoreOf(all), ...all, mutants: all.killed + all.survived },
    rooms: Object.fromEntries([...tallies].map(([{ name }, tally]) => [name, { score: scoreOf(tally), ...tally }])),
    survivors: [...new Set(survivors.map(markOf))].toSorted(),
  },
  { json: values.json, holds: missed.length === 0 },
);

async function mutate(
  name: Room["name"],
  { mutate: files, tests: lookers }: Hunt,
): Promise<{ tally: Tally; alive: readonly Survivor[] }> {
  const tests = lookers.filter((file) => values.test?.includes(file) ?? true);
  const chosen = values.file === undefined ? files : files.filter((file) => values.file?.includes(file));
  if (chosen.length === 0) return { tally: { killed: 0, survived: 0, ignored: 0 }, alive: [] };
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
  const alive = mutants
    .filter(({ status }) => status === "Survived" || status === "NoCoverage")
    .map((one) => {
      const fileName = relative(ROOT, one.fileName);
      return survivorOf({ ...one, fileName }, readFileSync(join(ROOT, fileName), "utf8"));
    });
  return { tally: tallyOf(mutants.map(({ status }) => status)), alive };
}
