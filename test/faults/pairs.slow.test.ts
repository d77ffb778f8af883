// Two faults in one story, from seeds; and how a play is written down and played again.
import { describe, expect, test } from "vitest";
import { chance, drawPair } from "./pairs.ts";
import { readInjection, replay, searchPairs, written } from "./search.ts";
import { STORIES } from "./stories.ts";

test("G28: two faults in one story, for the first 4000 seeds", { timeout: 120_000 }, async () => {
  const { violations } = await searchPairs(STORIES, { from: 1, count: 4_000 });
  expect(violations.map((one) => `${one.found} Again: ${replay(one)}`)).toEqual([]);
});

describe("a pair", () => {
  test("is the same for the same seed, and another for another", async () => {
    const [one, same, other] = await Promise.all([drawPair(STORIES, 7), drawPair(STORIES, 7), drawPair(STORIES, 8)]);
    expect(same).toEqual(one);
    expect(other).not.toEqual(one);
    expect(chance(3)()).toBe(chance(3)());
  });

  test("is written so that it can be read back", () => {
    const injection = { verb: "append", at: 3, fault: "store_full" } as const;
    expect(readInjection(written(injection))).toEqual(injection);
    expect(readInjection("read:always:late")).toEqual({ verb: "read", at: "always", fault: "late" });
    for (const bad of ["append", "append:0:late", "push:1:late", "append:1:never"]) {
      expect(() => readInjection(bad)).toThrow("A fault is written as");
    }
  });
});
