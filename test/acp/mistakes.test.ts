// The tests of the door, tested: known mistakes are found, and the door as it is has none of them.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { patch } from "../../sim/patch.ts";
import { hunt } from "./hunt.ts";
import { MISTAKES } from "./mistakes.ts";

/** One of each kind; `node test/acp/hunt-all.ts` hunts them all. */
const SAMPLE = ["answered-before-the-last-update", "leaving-cancels", "prompt-behind-a-close"];

describe("known mistakes", { timeout: 60_000 }, () => {
  test.each(MISTAKES)("$name fits the source as it is", ({ edits }) => {
    for (const edit of edits) {
      const source = readFileSync(new URL(`../../${edit.file}`, import.meta.url), "utf8");
      expect(patch(source, edit)).not.toBe(source);
    }
  });

  test("each has a name of its own and a sentence about it", () => {
    expect(new Set(MISTAKES.map(({ name }) => name)).size).toBe(MISTAKES.length);
    for (const { about } of MISTAKES) expect(about).toMatch(/^[A-Z].*\.$/);
  });

  test.each(SAMPLE)("%s is found", async (name) => {
    const mistake = MISTAKES.find((one) => one.name === name);
    expect(await hunt(mistake?.edits ?? [])).toMatch(/^([a-z-]+|no end): /);
  });

  test("the door as it is has none", async () => {
    expect(await hunt([])).toBeUndefined();
  });
});
