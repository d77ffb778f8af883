// close() in every situation, and the next start: nothing that was live is recorded as ended, and all of it continues.
import { describe, expect, test } from "vitest";
import { leavesNoTimer, searchIn, waitsForHooks } from "./search.ts";
import { MORE_SITUATIONS, SITUATIONS } from "./situations.ts";

describe("G25: after close() and the next start, the log is true and the work continues:", () => {
  test.each([...SITUATIONS, ...MORE_SITUATIONS])("%s", async (situation) => {
    expect(await searchIn(situation)).toBeUndefined();
  });
});

test("G33: no timer keeps the program alive after a close() that came to its limit", async () => {
  expect(await leavesNoTimer()).toBe(true);
});

test("G25: close() waits for the hook that is at work", async () => {
  expect(await waitsForHooks()).toBe(true);
});
