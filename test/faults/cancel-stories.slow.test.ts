// Every call of the store with every fault, in the stories about stops. All of it: see search.ts.
import { describe, expect, test } from "vitest";
import { CANCEL_STORIES } from "./cancel-stories.ts";
import { replay, searchStories } from "./search.ts";

describe("G28: every fault at every call of the store", { timeout: 120_000 }, () => {
  test.each(CANCEL_STORIES)("$name", async (story) => {
    const { injections, violations } = await searchStories([story]);
    expect(violations.map((one) => `${one.found} Again: ${replay(one)}`)).toEqual([]);
    // Every story asks the store for something, so there is always a call that can meet a fault.
    expect(injections).toBeGreaterThan(10);
  });
});
