import { expect, test } from "vitest";
import { type SourceText, sources } from "../fixtures/repository.ts";
import { checkMap, type Repository } from "./check-map.ts";
import { countRows, type FailureRow, failureMap, IDS } from "./failure-map.ts";
import { KNOWN_MISTAKES } from "./known-mistakes.ts";
import { filesByTestId } from "./test-ids.ts";

test("every failure of the list is shown by a test or a suite that exists, or says why it does not apply", {
  timeout: 60_000,
}, () => {
  expect(checkMap(failureMap(), { files: sources(), mistakes: KNOWN_MISTAKES })).toEqual([]);
});

test("the list has 141 rows, and the few that do not apply will apply once something is built", () => {
  expect(IDS.length).toBe(141);
  const { entries, mapped, doesNotApply, notYet } = countRows(failureMap());
  expect([entries, mapped + doesNotApply, notYet]).toEqual([141, 141, doesNotApply]);
  expect(mapped).toBeGreaterThanOrEqual(125);
});

/** Spelt in two parts, so that a search for skipped tests does not find these. */
const SKIP = ["sk", "ip"].join("");
const TO_DO = ["to", "do"].join("");

const TESTS: SourceText = {
  path: "test/made-up.test.ts",
  text: `
    describe("a group", { meta: { id: "G1/whole-group" } }, () => {
      test("a test", { meta: { id: "G1/plain-test" } }, () => {});
      test.each([1])("a row %i", { timeout: 5, meta: { id: "area/each-row" } }, () => {});
      it(\`a title with \${"x"}\`, { meta: { id: "G1/computed-title" } }, () => {});
    });
    test.runIf(here)("a test (where it can run)", { meta: { id: "G2/says-when" } }, () => {});
    test("a test without an id", { timeout: 5 }, () => {});
    const other = { test: () => {} };
    other.test("not a test", { meta: { id: "G1/not-a-test" } }, () => {});
    const options = { meta: { id: "G1/not-in-a-test" } };
  `,
};
const KILL_POINTS: SourceText = {
  path: "test/crash/made-up.ts",
  text: 'export const POINTS = ["kill-point"]; // not-a-kill-point',
};
const NONE: ReadonlySet<string> = new Set();
const MISTAKES: Repository["mistakes"] = {
  ...{ acp: NONE, crash: NONE, faults: NONE, power: NONE, soak: NONE, trees: NONE },
  sim: new Set(["known-mistake"]),
};

const A1: FailureRow = { id: "A1", failure: "something breaks", promise: "it does not matter" };
const shownBy = (...tests: readonly string[]): FailureRow => ({ ...A1, tests });
/** Without the findings about all the rows that a made-up map does not have. */
const findings = (row: FailureRow, ...files: readonly SourceText[]): readonly string[] =>
  checkMap([row], { files: [TESTS, KILL_POINTS, ...files], mistakes: MISTAKES }).filter(
    (finding) => !finding.endsWith("is missing."),
  );

test.each([["G1/whole-group"], ["G1/plain-test"], ["area/each-row"], ["G1/computed-title"], ["G2/says-when"]])(
  "the id %s is found",
  (id) => {
    expect(findings(shownBy(id))).toEqual([]);
  },
);

test("a known mistake and a kill point of a suite are found", () => {
  expect(findings({ ...A1, suites: [{ suite: "sim", point: "known-mistake" }] })).toEqual([]);
  expect(findings({ ...A1, suites: [{ suite: "crash", point: "kill-point" }] })).toEqual([]);
});

test("another title, another group and another file do not matter to the map", () => {
  const row = shownBy("G12/late-result-dropped");
  const options = `{ meta: { id: "G12/late-result-dropped" } }`;
  const before = { path: "src/a.test.ts", text: `test("old title", ${options}, () => {});` };
  const retitled = { ...before, text: `describe("a new group", () => { it("new title", ${options}, () => {}); });` };
  const moved = { path: "test/elsewhere/b-tests.ts", text: retitled.text };
  for (const file of [before, retitled, moved]) {
    expect(findings(row, file)).toEqual([]);
    expect(filesByTestId([TESTS, file]).get("G12/late-result-dropped")).toBe(file.path);
  }
  expect(findings(row)).toEqual(["A1: no test has the id G12/late-result-dropped."]);
});

test.each<[string, FailureRow, string]>([
  ["a row without tests and suites", A1, "no test and no suite shows it"],
  ["a row with empty lists", { ...A1, tests: [], suites: [] }, "no test and no suite shows it"],
  ["a row that is not in the list", { ...shownBy("G1/plain-test"), id: "Z1" }, "Z1 is not in the list"],
  ["a row beyond the last of its part", { ...shownBy("G1/plain-test"), id: "A17" }, "A17 is not in the list"],
  ["a row without a promise", { ...shownBy("G1/plain-test"), promise: " " }, "must be sentences"],
  ["a reason that is not a sentence", { ...A1, doesNotApply: "no" }, "must be a sentence"],
  [
    "a row that has tests and does not apply",
    { ...shownBy("G1/plain-test"), doesNotApply: "not yet built" },
    "does not apply, but names a test",
  ],
  ["an unknown field", { ...shownBy("G1/plain-test"), ...{ note: "x" } }, "there is no field note"],
  ["an id that no test has", shownBy("G1/gone"), "no test has the id G1/gone"],
  ["an id outside of a test", shownBy("G1/not-in-a-test"), "no test has the id"],
  ["an id of a method called test", shownBy("G1/not-a-test"), "no test has the id"],
  ["the beginning of an id", shownBy("G1/plain"), "no test has the id"],
  ["a title instead of an id", shownBy("a test"), "no test has the id a test"],
  ["the same id twice in a row", shownBy("G1/plain-test", "G1/plain-test"), "the same test or point twice"],
  ["an unknown suite", { ...A1, suites: [{ suite: "chaos" as "sim", point: "x" }] }, "no suite chaos"],
  [
    "a mistake that the simulation does not have",
    { ...A1, suites: [{ suite: "sim", point: "kill-point" }] },
    "sim has no known mistake kill-point",
  ],
  [
    "a mistake of another suite",
    { ...A1, suites: [{ suite: "crash", point: "known-mistake" }] },
    "crash has no known mistake known-mistake, and test/crash/ no such string",
  ],
  [
    "a kill point that only a comment contains",
    { ...A1, suites: [{ suite: "crash", point: "not-a-kill-point" }] },
    "no such string",
  ],
])("%s is a finding", (_, row, words) => {
  expect(findings(row).join()).toContain(words);
});

test.each<[string, string, string]>([
  ["an id without an area", `test("t", { meta: { id: "plain-test" } }, f)`, "(got plain-test)"],
  ["an id with one word", `test("t", { meta: { id: "G1/one" } }, f)`, "(got G1/one)"],
  ["an id in upper case", `test("t", { meta: { id: "G1/Two-words" } }, f)`, "(got G1/Two-words)"],
  ["an id with eight words", `test("t", { meta: { id: "a/b-c-d-e-f-g-h-i" } }, f)`, "(got a/b-c-d-e-f-g-h-i)"],
  ["an id that is computed", `test("t", { meta: { id: NAME } }, f)`, "test/more.test.ts:1 must be a string literal"],
  [
    "an id that another test has",
    `\ntest("t", { meta: { id: "G1/plain-test" } }, f)`,
    "G1/plain-test is the id of 2 tests: test/made-up.test.ts:3,test/more.test.ts:2.",
  ],
  ["a skipped test", `test.${SKIP}("t", { meta: { id: "G1/left-out" } }, f)`, "G1/left-out is skipped"],
  ["a test to be written", `test.${TO_DO}("t", { meta: { id: "G1/left-out" } })`, "G1/left-out is skipped"],
  ["a test that its options skip", `test("t", { ${SKIP}: true, meta: { id: "G1/left-out" } }, f)`, "is skipped"],
  [
    "a test in a skipped group",
    `describe.${SKIP}(NAME, () => test("t", { meta: { id: "G1/left-out" } }, f))`,
    "G1/left-out is skipped (test/more.test.ts:1)",
  ],
  [
    "a conditional test that does not say when",
    `test.runIf(here)("t", { meta: { id: "G1/perhaps-run" } }, f)`,
    "G1/perhaps-run may be skipped",
  ],
  [
    "a condition in the options of a group",
    `describe("g", { ${SKIP}: !here }, () => test("t", { meta: { id: "G1/perhaps-run" } }, f))`,
    "G1/perhaps-run may be skipped",
  ],
])("%s is a finding, although no row uses the id", (_, text, words) => {
  const found = findings(shownBy("G1/whole-group"), { path: "test/more.test.ts", text });
  expect(found).toHaveLength(1);
  expect(found[0]).toContain(words);
});

test("a row that is missing, and one that is there twice, are findings", () => {
  const rows = IDS.filter((id) => id !== "H7").map((id) => ({ ...shownBy("G1/plain-test"), id }));
  const twice = { ...shownBy("G1/plain-test"), id: "B2" };
  expect(checkMap([...rows, twice], { files: [TESTS], mistakes: MISTAKES })).toEqual([
    "B2 is there twice.",
    "H7 is missing.",
  ]);
});
