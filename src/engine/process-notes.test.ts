// The pace at which people hear of a process that goes on.
import { expect, test } from "vitest";
import { manualClock } from "../testing/manual-clock.ts";
import { startNotes } from "./process-notes.ts";

test("notes come after 2, 4, 8, 16, 30 and then every 30 seconds, until they are taken back", async () => {
  const clock = manualClock();
  const told: number[] = [];
  const began = clock.elapsed();
  const takeBack = startNotes(clock, () => told.push(clock.elapsed() - began));
  await clock.advance(125_000);
  expect(told).toEqual([2_000, 6_000, 14_000, 30_000, 60_000, 90_000, 120_000]);
  takeBack();
  expect(clock.pending).toEqual([]);
});
