// The trouble of `--focus store-trouble` and `--focus late-death` occurs there, and now and then in schedules about
// nothing in particular. Whether the engine withstands it is not tested here.
import { expect, test } from "vitest";
import { runSeed, type ScheduleResult } from "./random-schedule.ts";
import { FOCUSES, type Focus, TROUBLE_FOCUSES } from "./schedule-options.ts";

async function schedules(focus: Focus, count: number): Promise<readonly ScheduleResult[]> {
  const results: ScheduleResult[] = [];
  for (let seed = 1; seed <= count; seed += 1) results.push(await runSeed(seed, "lines", focus));
  return results;
}

const sum = (results: readonly ScheduleResult[], count: (result: ScheduleResult) => number): number =>
  results.reduce((total, result) => total + count(result), 0);

test("in schedules about store trouble the store refuses, is silent, slow, and late", async () => {
  const all = await schedules("store-trouble", 120);
  const kind = (name: string) => all.filter(({ options }) => options.storeTrouble?.kind === name);
  const kinds = ["refusing", "silent", "slow", "late"].map((name) => kind(name).length);
  expect(kinds.reduce((total, count) => total + count)).toBe(all.length);
  expect(sum(kind("refusing"), ({ storeTrouble }) => storeTrouble.refused)).toBeGreaterThan(20);
  expect(sum(kind("silent"), ({ storeTrouble }) => storeTrouble.silenced)).toBeGreaterThan(20);
  expect(sum(kind("slow"), ({ storeTrouble }) => storeTrouble.slowed)).toBeGreaterThan(5);
  expect(sum(kind("late"), ({ storeTrouble }) => storeTrouble.slowed)).toBeGreaterThan(5);
  expect(sum(kind("late"), ({ storeTrouble }) => storeTrouble.refused)).toBeGreaterThan(0);
  // Each kind keeps to itself.
  expect(sum(kind("slow"), ({ storeTrouble }) => storeTrouble.refused + storeTrouble.silenced)).toBe(0);
  const meanwhile = (lines: readonly string[]): readonly string[] =>
    lines.slice(lines.indexOf("the store is refusing") + 1, lines.indexOf("the store is well again"));
  const refused = ({ lines }: ScheduleResult): number =>
    meanwhile(lines).filter((line) => /^fail append .* store_/.test(line)).length;
  expect(sum(kind("refusing"), refused)).toBeGreaterThan(20);
});

test("in schedules about late deaths some are verified late, and some not before the schedule is over", async () => {
  const all = await schedules("late-death", 100);
  expect(sum(all, ({ processes }) => processes.verifiedLate)).toBeGreaterThan(5);
  const never = all.filter(({ options }) => options.deathVerified?.includes("never"));
  expect(never.length).toBeGreaterThan(20);
  const verified = (results: readonly ScheduleResult[]): number =>
    sum(results, ({ lines }) => lines.filter((line) => line.startsWith("verify the death of")).length);
  const unverified = sum(never, ({ processes }) => processes.unverified);
  expect(verified(never) + unverified).toBeGreaterThan(3);
  expect(verified(all) - verified(never)).toBe(0);
});

test("a few of the schedules about nothing in particular have it, too", async () => {
  const all = await schedules(undefined, 150);
  const troubled = all.filter(({ storeTrouble: { refused, silenced, slowed } }) => refused + silenced + slowed > 0);
  expect(troubled.length).toBeGreaterThan(1);
  expect(troubled.length).toBeLessThan(40);
});

test("schedules about anything else have none of this trouble, and do not mention it", async () => {
  for (const focus of FOCUSES) {
    for (const { options, storeTrouble, processes, lines } of await schedules(focus, 15)) {
      expect(storeTrouble).toEqual({ refused: 0, silenced: 0, slowed: 0 });
      expect([processes.verifiedLate, processes.unverified]).toEqual([0, 0]);
      // What a schedule has picked is part of its trace: one word more would change the hash of every seed.
      expect(Object.keys(options)).not.toContain("storeTrouble");
      expect(Object.keys(options)).not.toContain("deathVerified");
      expect(lines.some((line) => /the store is|^silence |^slow |^verify the death/.test(line))).toBe(false);
    }
  }
});

test("the same seed is the same schedule, also in trouble", async () => {
  for (const focus of TROUBLE_FOCUSES) {
    for (let seed = 1; seed <= 20; seed += 1) {
      expect((await runSeed(seed, "hash", focus)).hash).toBe((await runSeed(seed, "hash", focus)).hash);
    }
  }
});
