// Checks the failure map against the repository: every row of the list once, each with a test or a suite that shows it
// and exists; and the ids of the tests.
import ts from "typescript";
import { nodes, parse, type SourceText } from "../fixtures/repository.ts";
import { type FailureRow, IDS, type ShownBySuite, SUITES } from "./failure-map.ts";
import type { KnownMistakes } from "./known-mistakes.ts";
import { TEST_ID_FORM, type TestWithId, testIdsIn } from "./test-ids.ts";

/** What the map is checked against. */
export interface Repository {
  readonly files: readonly SourceText[];
  readonly mistakes: KnownMistakes;
}

/** The findings, one sentence each. */
export function checkMap(rows: readonly FailureRow[], repository: Repository): readonly string[] {
  const tests = testIdsIn(repository.files);
  const ids = new Set(tests.map(({ id }) => id));
  const findings: string[] = [];
  const seen = new Set<string>();
  for (const row of rows) {
    if (seen.has(row.id)) findings.push(`${row.id} is there twice.`);
    if (!IDS.includes(row.id)) findings.push(`${row.id} is not in the list of failures.`);
    seen.add(row.id);
    const found = [
      ...checkWords(row),
      ...(row.tests ?? []).filter((id) => !ids.has(id)).map((id) => `no test has the id ${id}.`),
      ...(row.suites ?? []).flatMap((suite) => checkSuite(suite, repository)),
    ];
    findings.push(...found.map((finding) => `${row.id}: ${finding}`));
  }
  const missing = IDS.filter((id) => !seen.has(id)).map((id) => `${id} is missing.`);
  return [...findings, ...missing, ...checkTestIds(tests)];
}

const FIELDS: ReadonlySet<string> = new Set([
  ...["id", "failure", "promise", "tests", "suites", "doesNotApply", "limit"],
]);

function checkWords(row: FailureRow): readonly string[] {
  const { failure, promise, tests = [], suites = [], doesNotApply } = row;
  const findings = Object.keys(row).flatMap((name) => (FIELDS.has(name) ? [] : [`there is no field ${name}.`]));
  if (!isSentence(failure) || !isSentence(promise)) findings.push("the failure and the promise must be sentences.");
  const shown = [...tests, ...suites.map(({ suite, point }) => `${suite}: ${point}`)];
  if (doesNotApply === undefined && shown.length === 0) findings.push("no test and no suite shows it.");
  if (new Set(shown).size < shown.length) findings.push("it names the same test or point twice.");
  if (doesNotApply === undefined) return findings;
  if (shown.length > 0) findings.push("it does not apply, but names a test or a suite.");
  if (!isSentence(doesNotApply)) findings.push("the reason why it does not apply must be a sentence.");
  return findings;
}

const isSentence = (text: unknown): boolean => typeof text === "string" && text.trim().length > 8;

/** Of all ids in the repository, whether a row uses them or not. */
function checkTestIds(tests: readonly TestWithId[]): readonly string[] {
  const places = Map.groupBy(tests, ({ id }) => id);
  const twice = [...places].flatMap(([id, found]) =>
    id !== undefined && found.length > 1 ? [`${id} is the id of ${found.length} tests: ${found.map(placeOf)}.`] : [],
  );
  return [...twice, ...tests.flatMap(checkForm), ...tests.flatMap(checkSkipped)];
}

function checkForm(test: TestWithId): readonly string[] {
  if (test.id === undefined) return [`The id of the test at ${placeOf(test)} must be a string literal.`];
  return TEST_ID_FORM.test(test.id)
    ? []
    : [`The id of the test at ${placeOf(test)} must look like G12/late-result-dropped (got ${test.id}).`];
}

/** A test that may be skipped on some machines must say so: in its title, around it, or in a part that is computed. */
function checkSkipped(test: TestWithId): readonly string[] {
  const { id, declared, titles } = test;
  if (declared.includes("skip") || declared.includes("todo")) return [`${id} is skipped (${placeOf(test)}).`];
  const conditional = declared.includes("skipIf") || declared.includes("runIf");
  return conditional && !/\b(where|as root|only root|unless)\b|\$\{/.test(titles.join(" > "))
    ? [`${id} may be skipped, and its title does not say when (${placeOf(test)}).`]
    : [];
}

const placeOf = ({ file, line }: TestWithId): string => `${file}:${line}`;

function checkSuite({ suite, point }: ShownBySuite, { files, mistakes }: Repository): readonly string[] {
  if (!Object.hasOwn(SUITES, suite)) return [`there is no suite ${suite}.`];
  if (mistakes[suite].has(point)) return [];
  const folder = SUITES[suite];
  if (folder === undefined) return [`${suite} has no known mistake ${point}.`];
  return files.some((file) => file.path.startsWith(folder) && hasText(file, point))
    ? []
    : [`${suite} has no known mistake ${point}, and ${folder} no such string.`];
}

/** Whether a string literal of this file is exactly that. */
function hasText(file: SourceText, point: string): boolean {
  const found = texts.get(file) ?? textsIn(file);
  texts.set(file, found);
  return found.has(point);
}

/** Each file is read once, however many rows name it. */
const texts = new WeakMap<SourceText, ReadonlySet<string>>();

function textsIn(file: SourceText): ReadonlySet<string> {
  const found = new Set<string>();
  for (const node of nodes(parse(file))) if (ts.isStringLiteralLike(node)) found.add(node.text);
  return found;
}
