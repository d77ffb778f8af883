// The tester, tested: known mistakes are found, and the code as it is has none of them.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { CORPUS } from "./bugs/corpus.ts";
import { PROCESS_BUGS } from "./bugs/process-bugs.ts";
import { runErrand } from "./errands.ts";
import { huntOne } from "./hunt.ts";
import { patch } from "./patch.ts";

/** One of each kind; `npm run sim -- --bugs` hunts them all. */
const SAMPLE = [
  "cancel-consumed-by-first",
  "steer-lost-at-the-end",
  "told-before-durable",
  "stopping-run-lost",
  "end-calls-asked-while-stopping",
  "approval-outlives-its-run",
  "reminded-of-what-finished",
  "result-not-held",
  "lost-process-not-fed",
  "leftovers-of-a-call",
  "provider-not-told",
  "unknown-told-as-done",
  "lease-by-the-wall",
  "gap-told-twice",
  "wait-kept-after-trouble",
];

describe("the corpus", () => {
  test("has at least two hundred mistakes, each with a name of its own and a sentence about it", () => {
    expect(CORPUS.length).toBeGreaterThanOrEqual(200);
    expect(new Set(CORPUS.map((bug) => bug.name)).size).toBe(CORPUS.length);
    for (const { name, about } of CORPUS) {
      expect(name).toMatch(/^[a-z]+(-[a-z]+)+$/);
      expect(about).toMatch(/^[A-Z].*\.$/);
    }
  });

  test.each(CORPUS)("$name fits the source as it is", ({ edits }) => {
    for (const edit of edits) {
      const source = readFileSync(new URL(`../${edit.file}`, import.meta.url), "utf8");
      expect(patch(source, edit)).not.toBe(source);
    }
  });

  test("a mistake whose place is not there exactly once is an error", () => {
    const edit = { file: "a.ts", find: "x", replace: "y" };
    expect(patch("axb", edit)).toBe("ayb");
    expect(() => patch("ab", edit)).toThrow("0 times");
    expect(() => patch("xx", edit)).toThrow("2 times");
  });
});

describe("the hunt", () => {
  test.each(SAMPLE)("finds %s", { timeout: 60_000 }, async (name) => {
    const bug = CORPUS.find((one) => one.name === name);
    expect(await huntOne(bug ?? { edits: [] }, 1)).toMatch(/^G\d+ /);
  });

  test("finds nothing in the code as it is", { timeout: 60_000 }, async () => {
    const answers: unknown[] = [];
    const heard = (answer: { readonly kind: string }): void => {
      if (answer.kind === "hunted") answers.push(answer);
    };
    await runErrand({ kind: "bug", edits: [], seed: 1, seeds: 3_000 }, heard);
    expect(answers).toEqual([{ kind: "hunted", by: undefined }]);
  });

  test("finds nothing if the inbox is only small", { timeout: 60_000 }, async () => {
    const answers: unknown[] = [];
    const heard = (answer: { readonly kind: string }): void => {
      if (answer.kind === "hunted") answers.push(answer);
    };
    const small = PROCESS_BUGS.find(({ name }) => name === "room-not-reserved")?.edits[0];
    const edits = small === undefined ? [] : [small];
    await runErrand({ kind: "bug", edits, seed: 1, seeds: 1_000, focus: "processes" }, heard);
    expect(answers).toEqual([{ kind: "hunted", by: undefined }]);
  });

  test("a schedule that does not end is ended from outside, and told as such", { timeout: 60_000 }, async () => {
    const edits = [
      { file: "src/core/lane.ts", find: "export function evolve(", replace: "for (;;);\nexport function evolve(" },
    ];
    const errand = { kind: "bug", edits, seed: 1, seeds: 1 } as const;
    expect(await runErrand(errand, () => {}, { silenceMs: 1 })).toBe("silent");
    expect(await runErrand(errand, () => {}, { limitMs: 1 })).toBe("limit");
  });

  test("an edit that does not fit is reported, not counted as found", async () => {
    const edits = [{ file: "src/core/decide.ts", find: "this is nowhere", replace: "" }];
    await expect(runErrand({ kind: "bug", edits, seed: 1, seeds: 1 }, () => {})).rejects.toThrow("0 times");
  });
});
