import { expect, test } from "vitest";
import { type SourceText, sources } from "../house.ts";
import { checkMap } from "./check-map.ts";
import { countRows, type FailureRow, failureMap, IDS } from "./failure-map.ts";

const houseOf = (...files: readonly SourceText[]) => new Map(files.map((file) => [file.path, file]));

test("every failure of the list is shown by a test or a suite that is there, or says why it does not apply", {
  timeout: 60_000,
}, () => {
  expect(checkMap(failureMap(), houseOf(...sources()))).toEqual([]);
});

test("the list has 141 entries, and what does not apply is little and will apply once it is built", () => {
  expect(IDS.length).toBe(141);
  const { entries, mapped, doesNotApply, notYet } = countRows(failureMap());
  expect([entries, mapped + doesNotApply, notYet]).toEqual([141, 141, doesNotApply]);
  expect(mapped).toBeGreaterThanOrEqual(125);
});

/** Spelt apart, so that nobody who looks for such tests takes these for some. */
const LEFT_OUT = ["sk", "ip"].join("");

const TESTS: SourceText = {
  path: "test/made-up.test.ts",
  text: `
    describe("a thing", () => {
      test("is so", () => {});
      test.each([1])("is %i", () => {});
      test(\`is \${"x"} and more\`, () => {});
      it.${LEFT_OUT}("is left out", () => {});
    });
    describe("another thing", () => test("is so", () => {}));
    describe.${LEFT_OUT}("a group that is left out", () => test("is inside", () => {}));
    test.runIf(here)("may be left out", () => {});
    test.runIf(here)("is there (where it can be)", () => {});
    test("is so, and twice", () => {});
    test("is so, and again", () => {});
    const other = { test: () => {} };
    other.test("is no test", () => {});
  `,
};
const BUGS: SourceText = {
  path: "sim/bugs/made-up.ts",
  text: 'export const BUG = { name: "known-mistake" }; // other-mistake',
};

const A1: FailureRow = { id: "A1", failure: "something breaks", promise: "it does not matter" };
const shownBy = (name: string, file = TESTS.path): FailureRow => ({ ...A1, tests: [{ file, name }] });
/** Without what is said of all the ids that a made-up map does not have. */
const findings = (...rows: readonly FailureRow[]): readonly string[] =>
  checkMap(rows, houseOf(TESTS, BUGS)).filter((finding) => !finding.endsWith("is missing."));

test.each([
  ["is so, and twice"],
  ["a thing > is so"],
  ["a thing > is %i"],
  ["a thing > is ${"],
  ["a thing"],
  ["is there (where it can be)"],
])("%j is found", (name) => {
  expect(findings(shownBy(name))).toEqual([]);
});

test("a known mistake of a suite is found", () => {
  expect(findings({ ...A1, suites: [{ suite: "sim", point: "known-mistake" }] })).toEqual([]);
});

test.each<[string, FailureRow, string]>([
  ["a row that nothing shows", A1, "nothing shows it"],
  ["a row with empty lists", { ...A1, tests: [], suites: [] }, "nothing shows it"],
  ["an id that is none", { ...shownBy("a thing"), id: "Z1" }, "Z1 is no id"],
  ["a number beyond the last", { ...shownBy("a thing"), id: "A17" }, "A17 is no id"],
  ["a row without words", { ...shownBy("a thing"), promise: " " }, "said in words"],
  ["a reason without words", { ...A1, doesNotApply: "no" }, "said in words"],
  ["a row that is shown and does not apply", { ...shownBy("a thing"), doesNotApply: "not yet built" }, "all the same"],
  ["a field that there is not", { ...shownBy("a thing"), ...{ note: "x" } }, "there is no field note"],
  ["a file that is not there", shownBy("a thing", "test/gone.test.ts"), "there is no file test/gone.test.ts"],
  ["a test that is not there", shownBy("is not so"), 'no test called "is not so"'],
  ["a title that something else has", shownBy("is no test"), 'no test called "is no test"'],
  ["the middle of a title", shownBy("thing > is so"), "no test called"],
  ["a title that several begin with", shownBy("is so, and"), "2 tests called"],
  ["a title that stands in two places", shownBy("is so"), "tests called"],
  ["a test that is left out", shownBy("is left out"), "is left out"],
  ["a test in a group that is left out", shownBy("is inside"), "is left out"],
  ["a test that may be left out and does not say when", shownBy("may be left out"), "does not say when"],
  [
    "a row that names the same test twice",
    { ...A1, tests: [shownBy("a thing"), shownBy("a thing")].flatMap(({ tests = [] }) => tests) },
    "the same thing twice",
  ],
  ["a suite that is none", { ...A1, suites: [{ suite: "chaos" as "sim", point: "x" }] }, "no suite chaos"],
  [
    "a mistake that no suite has",
    { ...A1, suites: [{ suite: "sim", point: "unknown-mistake" }] },
    "nothing in sim/bugs",
  ],
  ["a mistake that is only spoken of", { ...A1, suites: [{ suite: "sim", point: "other-mistake" }] }, "nothing in sim"],
])("%s is told", (_, row, words) => {
  expect(findings(row).join()).toContain(words);
});

test("an id that is missing, and one that is there twice, are told", () => {
  const rows = IDS.filter((id) => id !== "H7").map((id) => ({ ...shownBy("a thing"), id }));
  expect(checkMap([...rows, { ...shownBy("a thing"), id: "B2" }], houseOf(TESTS))).toEqual([
    "B2 is there twice.",
    "H7 is missing.",
  ]);
});
