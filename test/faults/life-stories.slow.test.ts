// Every call of the store with every fault, in the stories about processes, followers, ends and restarts.
import { describe, expect, test } from "vitest";
import { LIFE_STORIES } from "./life-stories.ts";
import { replay, searchStories } from "./search.ts";

describe("G28: every fault at every call of the store", { timeout: 120_000 }, () => {
  test.each(LIFE_STORIES)("$name", async (story) => {
    const { injections, violations } = await searchStories([story]);
    expect(violations.map((one) => `${one.found} Again: ${replay(one)}`)).toEqual([]);
    // Every story asks the store for something, so there is always a call that can meet a fault.
    expect(injections).toBeGreaterThan(10);
  });
});
