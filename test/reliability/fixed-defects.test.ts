import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "../fixtures/repository.ts";
import { defectTable, fixedDefects } from "./fixed-defects.ts";

test("each fixed defect has a symptom, a version and a test that exists", () => {
  const defects = fixedDefects();
  expect(defects.length).toBeGreaterThan(0);
  for (const { kind, symptom, fixedIn, test: file, title = "" } of defects) {
    expect(kind).toMatch(/^[a-z]+$/);
    expect(symptom).toMatch(/^.{20,}\.$/);
    expect(fixedIn).toMatch(/^\d+\.\d+\.\d+$/);
    const text = readFileSync(join(ROOT, file), "utf8");
    expect([file, title, text.includes(title)]).toEqual([file, title, true]);
  }
});

test("the table is by kind, and links to the test", () => {
  const one = { kind: "stops", symptom: "A | B.", fixedIn: "0.1.0", test: "test/a.test.ts" };
  expect(defectTable([one])).toContain("| stops | A \\| B. | 0.1.0 | [a.test.ts](../test/a.test.ts) |");
});
