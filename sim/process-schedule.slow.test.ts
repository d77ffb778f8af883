import { expect, test } from "vitest";
import { type ProcessTally, runSeed, type ScheduleResult } from "./random-schedule.ts";

const SEEDS = 1_400;

test("G22: feedback exactly once under 1,000 random schedules of exit, wait, cancel, restart", {
  timeout: 60_000,
}, async () => {
  const schedules = new Set<string>();
  const sum = { completed: 0, cancelled: 0, lost: 0, toldByTurns: 0, toldByCalls: 0, restarts: 0 };
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const { violations, hash, processes } = await runSeed(seed, "hash", "processes");
    const replay = `npm run sim -- --seed ${seed} --focus processes --schedules 1 --trace`;
    expect(violations, `seed ${seed}; replay: ${replay}`).toEqual([]);
    if (processes.completed + processes.cancelled + processes.lost > 0) schedules.add(hash);
    for (const kind of KINDS) sum[kind] += processes[kind];
  }
  // Only those count in which a process ended, one way or another.
  expect(schedules.size).toBeGreaterThanOrEqual(1_000);
  for (const kind of KINDS) expect(sum[kind], kind).toBeGreaterThan(25);
});

const KINDS = [
  "completed",
  "cancelled",
  "lost",
  "toldByTurns",
  "toldByCalls",
  "restarts",
] as const satisfies readonly (keyof ProcessTally)[];

test("the same seed is the same schedule, also with processes", async () => {
  const runs: ScheduleResult[] = [];
  for (let seed = 1; seed <= 30; seed += 1) {
    runs.push(await runSeed(seed, "lines", "processes"), await runSeed(seed, "lines", "processes"));
  }
  for (let at = 0; at < runs.length; at += 2) expect(runs[at]?.lines).toEqual(runs[at + 1]?.lines);
});
