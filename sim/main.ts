// npm run sim: seeded schedules, every interleaving of small scopes, or the corpus of known mistakes.
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { type Answer, runErrand } from "./errands.ts";
import { huntBugs } from "./hunt.ts";

const HELP = `npm run sim -- [--schedules N] [--seed S] [--trace] [--json]   seeded random schedules
           [--processes]                                       all of them with processes
npm run sim -- --exhaustive [--ops 4] [--json]                 every interleaving of small scopes
npm run sim -- --bugs [--only NAME] [--seed S] [--json]        known mistakes, each of which must be found`;

const { values } = parseArgs({
  options: {
    schedules: { type: "string", default: "20000" },
    seed: { type: "string", default: "1" },
    ops: { type: "string", default: "4" },
    only: { type: "string" },
    exhaustive: { type: "boolean", default: false },
    bugs: { type: "boolean", default: false },
    trace: { type: "boolean", default: false },
    processes: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

const focus = values.processes ? "processes" : undefined;
const about = values.processes ? " --processes" : "";
const seed = whole(values.seed, "--seed");
if (values.help) console.log(HELP);
else if (values.trace) await trace();
else if (values.bugs) await bugs();
else if (values.exhaustive) await exhaustive(whole(values.ops, "--ops"));
else await schedules(whole(values.schedules, "--schedules"));

/** One schedule, step by step. */
async function trace(): Promise<void> {
  const { runSeed } = await import("./random-schedule.ts");
  const { lines, hash, violations } = await runSeed(seed, "lines", focus);
  for (const line of lines) console.log(line);
  console.log(`seed ${seed}, trace ${hash}, ${violations.length} violations`);
  if (violations.length > 0) process.exitCode = 1;
}

async function schedules(count: number): Promise<void> {
  say(`seed ${seed}, ${count} schedules`);
  const began = performance.now();
  const hashes = new Set<string>();
  let violations = 0;
  const threads = shares(count);
  const done = threads.map(() => 0);
  const heard = (index: number) => (answer: Answer) => {
    if (answer.kind === "progress") {
      done[index] = answer.done;
      for (const hash of answer.hashes ?? []) hashes.add(hash);
      progress(`${sum(done)} of ${count} schedules`);
    } else if (answer.kind === "searched") {
      for (const found of answer.found) {
        violations += found.violations.length;
        for (const { rule, message } of found.violations) say(`seed ${found.seed}: ${rule}: ${message}`);
        say(`replay: npm run sim -- --seed ${found.seed}${about} --schedules 1 --trace`);
      }
    }
  };
  await Promise.all(
    threads.map(({ from, count: share }, index) =>
      runErrand({ kind: "seeds", from: seed + from, count: share, focus }, heard(index)),
    ),
  );
  // A thread that has found enough stops early.
  const schedules = sum(done);
  const perSecond = Math.round((schedules / (performance.now() - began)) * 1_000);
  report({ suite: "sim", seed, schedules, distinct: hashes.size, perSecond, violations });
}

async function exhaustive(ops: number): Promise<void> {
  const of = availableParallelism();
  let scopes = 0;
  let interleavings = 0;
  let violations = 0;
  const done = Array.from({ length: of }, () => 0);
  const heard = (index: number) => (answer: Answer) => {
    if (answer.kind === "progress") {
      done[index] = answer.done;
      progress(`${sum(done)} scopes`);
    } else if (answer.kind === "explored") {
      scopes += answer.scopes;
      interleavings += answer.interleavings;
    } else if (answer.kind === "broken") {
      violations += 1;
      const { rule, message, choices } = answer.violation;
      say(`{ ${answer.scope.join(", ")} } with choices [${choices.join(",")}]: ${rule}: ${message}`);
    }
  };
  await Promise.all(done.map((_, index) => runErrand({ kind: "scopes", ops, share: { index, of } }, heard(index))));
  report({ suite: "exhaustive", scopes, interleavings, violations });
}

async function bugs(): Promise<void> {
  const { known, missed } = await huntBugs({
    seed,
    only: values.only,
    found: (name, by, ms) => say(`${name}: found in ${Math.round(ms)} ms by ${by}`),
    missed: (name) => say(`${name}: NOT FOUND`),
  });
  console.log(
    values.json
      ? JSON.stringify({ suite: "bugs", known, found: known - missed.length, missed })
      : `${known - missed.length} of ${known} found`,
  );
  if (missed.length > 0) process.exitCode = 1;
}

function report(result: { readonly violations: number } & Readonly<Record<string, string | number>>): void {
  if (process.stderr.isTTY) process.stderr.write("\n");
  console.log(values.json ? JSON.stringify(result) : result);
  if (result.violations > 0) process.exitCode = 1;
}

/** To the error stream: the last line of the output is the result's. */
function say(line: string): void {
  process.stderr.write(`${process.stderr.isTTY ? "\r\u001b[K" : ""}${line}\n`);
}

function progress(line: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${line}`);
}

/** Each thread a row of seeds; few seeds are not worth a second thread. */
function shares(count: number): readonly { readonly from: number; readonly count: number }[] {
  const threads = count < 1_000 ? 1 : availableParallelism();
  const each = Math.ceil(count / threads);
  return Array.from({ length: threads }, (_, index) => ({
    from: index * each,
    count: Math.min(each, count - index * each),
  }));
}

function whole(given: string, name: string): number {
  const number = Number(given);
  if (!Number.isInteger(number) || number < 0) throw new TypeError(`${name} takes a whole number, not ${given}`);
  return number;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
