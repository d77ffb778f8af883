// The tester, tested: known mistakes are found, and the code as it is has none of them.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { editModules } from "../test/mistakes/mistake.ts";
import { CORPUS } from "./bugs/corpus.ts";
import { PROCESS_BUGS } from "./bugs/process-bugs.ts";
import { huntOne } from "./hunt.ts";
import { runTask } from "./tasks.ts";

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
  test("has at least two hundred mistakes, each with its own name and a sentence about it", () => {
    expect(CORPUS.length).toBeGreaterThanOrEqual(200);
    expect(new Set(CORPUS.map((bug) => bug.name)).size).toBe(CORPUS.length);
    for (const { name, about } of CORPUS) {
      expect(name).toMatch(/^[a-z]+(-[a-z]+)+$/);
      expect(about).toMatch(/^[A-Z].*\.$/);
    }
  });

  test.each(CORPUS)("$name applies to the source as it is", (bug) => {
    for (const { file, text } of editModules([bug])) expect(text).not.toBe(readFileSync(file, "utf8"));
  });
});

describe("the hunt", () => {
  test.each(SAMPLE)("finds %s", { timeout: 60_000 }, async (name) => {
    const bug = CORPUS.find((one) => one.name === name);
    expect(bug === undefined ? undefined : await huntOne(bug, 1)).toMatch(/^G\d+ /);
  });

  test("finds nothing in the code as it is", { timeout: 60_000 }, async () => {
    const answers: unknown[] = [];
    const heard = (answer: { readonly kind: string }): void => {
      if (answer.kind === "hunted") answers.push(answer);
    };
    await runTask({ kind: "bug", modules: [], seed: 1, seeds: 3_000 }, heard);
    expect(answers).toEqual([{ kind: "hunted", by: undefined }]);
  });

  test("finds nothing if the inbox is only small", { timeout: 60_000 }, async () => {
    const answers: unknown[] = [];
    const heard = (answer: { readonly kind: string }): void => {
      if (answer.kind === "hunted") answers.push(answer);
    };
    const { name, edits } = PROCESS_BUGS.find((bug) => bug.name === "room-not-reserved") ?? { name: "", edits: {} };
    const modules = editModules([{ name, edits: Object.fromEntries(Object.entries(edits).slice(0, 1)) }]);
    await runTask({ kind: "bug", modules, seed: 1, seeds: 1_000, focus: "processes" }, heard);
    expect(answers).toEqual([{ kind: "hunted", by: undefined }]);
  });

  test("a schedule that does not end is ended from outside, and told as such", { timeout: 60_000 }, async () => {
    const [first] = editModules(CORPUS.slice(0, 1));
    const modules = [{ file: first?.file ?? "", text: "for (;;);" }];
    const errand = { kind: "bug", modules, seed: 1, seeds: 1 } as const;
    expect(await runTask(errand, () => {}, { silenceMs: 1 })).toBe("silent");
    expect(await runTask(errand, () => {}, { limitMs: 1 })).toBe("limit");
  });
});
