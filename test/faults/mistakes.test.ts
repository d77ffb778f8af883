// The faults, tested: known mistakes are found, and the house as it is has none of them.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { patch } from "../../sim/patch.ts";
import { hunt } from "./hunt.ts";
import { MISTAKES } from "./mistakes.ts";

/** Those that are found within a second or two; `npm run faults -- --mistakes` hunts them all. */
const SAMPLE = [
  "lost-answer-taken-for-no",
  "fault-swallowed",
  "refused-and-recorded",
  "refused-stays-decided",
  "end-of-work-refused",
  "never-tried-again",
  "closed-house-keeps-callers-waiting",
  "refused-run-keeps-its-home",
];

describe("known mistakes", { timeout: 120_000 }, () => {
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
    expect(await hunt(mistake?.edits ?? [])).toMatch(/^(G\d+|no end|a bug|the play)/);
  });
});
