// A steady load on one store with retention: file size, memory, CPU per run, start time and cancels stay flat.
// `npm run steady -- --minutes 60`
//
//   --minutes N   how long (default 60), counted from the moment at which every limit of retention is in force
//   --rate N      runs a second (default 20)
//   --seed S      the order of prompts and cancels (default 1)
//   --json        the last line is one object
//
// Exits with 1 if one of them is more than a quarter above what it was (times: from 10 minutes on), if memory grows
// steadily (from 10 minutes on), or if a run ended otherwise than it should.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { conclude, optionsOf, progress, refuse, say, wholeNumber } from "../run/suite.ts";
import { LIMITS, startLoad } from "./load.ts";
import { changeOf, FLAT, hasGrown, isLeaking, memorySlope, type Sample, Sampler, SIZES } from "./sample.ts";

/** In less, times say more about what else the machine was doing. Sizes are judged in any case. */
const MINUTES_FOR_TIMES = 10;

/** One every ten seconds, or a minute in an hour: each takes a second of its own. */
const SAMPLES_MAX = 60;

const WARM_UP_STEP_MS = 500;

const values = optionsOf({
  minutes: { type: "string", default: "60" },
  rate: { type: "string", default: "20" },
  seed: { type: "string", default: "1" },
  json: { type: "boolean", default: false },
});
const minutes = Number(values.minutes);
if (!(minutes > 0)) refuse(`--minutes takes a number above 0, not ${values.minutes}.`);
const seed = wholeNumber(values.seed, "--seed");
const SAMPLES = Math.max(9, Math.min(SAMPLES_MAX, Math.floor(minutes * 6)));
const runsPerSecond = wholeNumber(values.rate, "--rate");

say(`seed ${seed}`);
const folder = mkdtempSync(join(tmpdir(), "belay-steady-"));
const samples: Sample[] = [];
try {
  const file = join(folder, "belay.db");
  const load = await startLoad({ file, seed, runsPerSecond });
  const sampler = new Sampler(load, file);
  while (!load.isAtLimits()) await pause(WARM_UP_STEP_MS);
  const began = performance.now();
  for (let index = 1; index <= SAMPLES; index += 1) {
    await pause(Math.max(0, began + (index * minutes * 60_000) / SAMPLES - performance.now()));
    const sample = await sampler.take();
    samples.push(sample);
    progress(`${index} of ${SAMPLES}: ${JSON.stringify(sample)}`);
  }
  await load.stop();
  const { runs, cancels, sessions, wrong } = load.counts;
  const change = changeOf(samples);
  const grown = (minutes < MINUTES_FOR_TIMES ? SIZES : FLAT).filter((key) => hasGrown(key, change[key]));
  const memoryMBPerHour = memorySlope(samples);
  const leaks = minutes >= MINUTES_FOR_TIMES && isLeaking(memoryMBPerHour, minutes);
  if (leaks) say(`FOUND: memory grows by ${memoryMBPerHour} MB an hour`);
  for (const key of grown) say(`FOUND: ${key} is ${change[key].growth} times what it was`);
  for (const one of wrong.slice(0, 10)) say(`FOUND: ${one}`);
  const counts = { runs, cancels, sessions, wrong: wrong.length };
  const result = { suite: "steady", minutes, ...counts, grown, change, memoryMBPerHour };
  const holds = grown.length === 0 && !leaks && wrong.length === 0 && runs > 0;
  conclude({ ...result, limits: LIMITS, seed, series: samples }, { json: values.json, holds });
} finally {
  rmSync(folder, { recursive: true, force: true });
}
