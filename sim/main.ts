// npm run sim: seeded schedules, every interleaving of small scopes, or the corpus of known mistakes.
import { availableParallelism } from "node:os";
import { conclude, optionsOf, progress, refuse, say, wholeNumber } from "../test/run/suite.ts";
import { Distinct } from "./distinct.ts";
import { huntBugs } from "./hunt.ts";
import { FOCUSES, type Focus, TROUBLE_FOCUSES } from "./schedule-options.ts";
import { PROGRESS_EVERY } from "./search.ts";
import { type Answer, runTask } from "./tasks.ts";

const HELP = `npm run sim -- [--schedules N] [--seed S] [--trace] [--json]   seeded random schedules
           [--focus ${FOCUSES.join("|")}]           all of them about one thing
           [--focus ${TROUBLE_FOCUSES.join("|")}]                  trouble that few other schedules have
           [--twice]                                           each seed twice, which must be the same schedule
npm run sim -- --exhaustive [--ops 4] [--json]                 every interleaving of small scopes
npm run sim -- --bugs [--only NAME] [--sample N [--part K]] [--json]   known mistakes, each (or one in N, from the
                                                               K-th on) must be found`;

const values = optionsOf(
  {
    schedules: { type: "string", default: "20000" },
    seed: { type: "string", default: "1" },
    ops: { type: "string", default: "4" },
    only: { type: "string" },
    exhaustive: { type: "boolean", default: false },
    bugs: { type: "boolean", default: false },
    sample: { type: "string", default: "1" },
    part: { type: "string", default: "0" },
    trace: { type: "boolean", default: false },
    focus: { type: "string" },
    twice: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
  HELP,
);

/** A schedule takes some milliseconds, on a machine that is very busy some hundred. */
const SILENCE_MS_MAX = 60_000;

const focus = focusOf(values.focus);
const about = focus === undefined ? "" : ` --focus ${focus}`;
const seed = wholeNumber(values.seed, "--seed");
const { json, twice } = values;
if (values.trace) await trace();
else if (values.bugs) await bugs();
else if (values.exhaustive) await exhaustive(wholeNumber(values.ops, "--ops"));
else await schedules(wholeNumber(values.schedules, "--schedules"));

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
  const traces = new Distinct();
  let violations = 0;
  const threads = shares(count);
  const done = threads.map(() => 0);
  const heard = (index: number) => (answer: Answer) => {
    if (answer.kind === "progress") {
      done[index] = answer.done;
      for (const hash of answer.hashes ?? []) traces.add(hash);
      progress(`${sum(done)} of ${count} schedules`);
    } else if (answer.kind === "searched") {
      for (const found of answer.found) {
        violations += found.violations.length;
        for (const { rule, message } of found.violations) say(`seed ${found.seed}: ${rule}: ${message}`);
        say(`options: ${JSON.stringify(found.options)}`);
        say(`replay: npm run sim -- --seed ${found.seed}${about} --schedules 1 --trace`);
      }
    }
  };
  await Promise.all(
    threads.map(async ({ from, count: share }, index) => {
      const errand = { kind: "seeds", from: seed + from, count: share, focus, twice } as const;
      if ((await runTask(errand, heard(index), { silenceMs: SILENCE_MS_MAX })) !== "silent") return;
      violations += 1;
      const first = seed + from + (done[index] ?? 0);
      say(`G33: a schedule does not end; its seed is from ${first} to ${first + PROGRESS_EVERY - 1}.`);
    }),
  );
  // A thread that has found enough stops early.
  const schedules = sum(done);
  const perSecond = Math.round((schedules / (performance.now() - began)) * 1_000);
  const result = { suite: "sim", seed, schedules, distinct: traces.size, perSecond, violations };
  conclude(result, { json, holds: violations === 0 });
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
  await Promise.all(done.map((_, index) => runTask({ kind: "scopes", ops, share: { index, of } }, heard(index))));
  conclude({ suite: "exhaustive", scopes, interleavings, violations }, { json, holds: violations === 0 });
}

async function bugs(): Promise<void> {
  const { known, missed } = await huntBugs({
    seed,
    only: values.only,
    sample: wholeNumber(values.sample, "--sample"),
    part: wholeNumber(values.part, "--part"),
    found: (name, by, ms) => say(`${name}: found in ${Math.round(ms)} ms by ${by}`),
    missed: (name, why) => say(`${name}: NOT FOUND: ${why}`),
  });
  conclude({ suite: "bugs", known, found: known - missed.length, missed }, { json, holds: missed.length === 0 });
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

function focusOf(given: string | undefined): Focus {
  const known = [...FOCUSES, ...TROUBLE_FOCUSES];
  const found = known.find((one) => one === given);
  if (given === undefined || found !== undefined) return found;
  refuse(`--focus takes ${known.join(", ")}, not ${given}.`);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
