// Holds the map against the house: every id once, each with something that shows it, and that is there.
import ts from "typescript";
import { nodes, parse, type SourceText } from "../house.ts";
import { type FailureRow, IDS, type ShownBySuite, type ShownByTest, SUITES } from "./failure-map.ts";
import { type Titled, titlesIn } from "./test-titles.ts";

/** The files of the house, by their path. */
export type House = ReadonlyMap<string, SourceText>;

/** What is wrong, one sentence each. */
export function checkMap(rows: readonly FailureRow[], house: House): readonly string[] {
  const findings: string[] = [];
  const seen = new Set<string>();
  for (const row of rows) {
    if (seen.has(row.id)) findings.push(`${row.id} is there twice.`);
    if (!IDS.includes(row.id)) findings.push(`${row.id} is no id of the list.`);
    seen.add(row.id);
    findings.push(...checkRow(row, house).map((finding) => `${row.id}: ${finding}`));
  }
  return [...findings, ...IDS.filter((id) => !seen.has(id)).map((id) => `${id} is missing.`)];
}

const FIELDS: ReadonlySet<string> = new Set([
  ...["id", "failure", "promise", "tests", "suites", "doesNotApply", "limit"],
]);

function checkRow(row: FailureRow, house: House): readonly string[] {
  const { failure, promise, tests = [], suites = [], doesNotApply } = row;
  const findings = Object.keys(row).flatMap((name) => (FIELDS.has(name) ? [] : [`there is no field ${name}.`]));
  if (!isSentence(failure) || !isSentence(promise)) findings.push("the failure and the promise are said in words.");
  const shown = tests.length + suites.length;
  if (doesNotApply === undefined && shown === 0) findings.push("nothing shows it.");
  const said = [...tests, ...suites].map((one) => JSON.stringify(Object.values(one)));
  if (new Set(said).size < said.length) findings.push("it names the same thing twice.");
  if (doesNotApply !== undefined && shown > 0) findings.push("it does not apply, and is shown all the same.");
  if (doesNotApply !== undefined && !isSentence(doesNotApply)) findings.push("why it does not apply is said in words.");
  return [
    ...findings,
    ...tests.flatMap((test) => checkTest(test, house)),
    ...suites.flatMap((suite) => checkSuite(suite, house)),
  ];
}

const isSentence = (text: unknown): boolean => typeof text === "string" && text.trim().length > 8;

function checkTest({ file, name }: ShownByTest, house: House): readonly string[] {
  const source = house.get(file);
  if (source === undefined) return [`there is no file ${file}.`];
  const found = known(titles, source, titlesIn).filter((titled) => fits(titled, name));
  const exact = found.filter(({ path }) => path.at(-1) === name || path.join(" > ") === name);
  const meant = found.length > 1 && exact.length === 1 ? exact : found;
  if (meant.length === 0) return [`${file} has no test called "${name}".`];
  if (meant.length > 1) return [`${file} has ${meant.length} tests called "${name}": say which.`];
  return meant.flatMap((titled) => checkSkipped(titled, file));
}

/** By the title itself, or by as many of those around it as it takes. */
function fits({ path }: Titled, name: string): boolean {
  return path.some((_, index) => {
    const depth = name.split(" > ").length;
    return path.length - index === depth && path.slice(index).join(" > ").startsWith(name);
  });
}

/** A test that may be left out on some machine says so in its title, in one around it, or in what is put into one. */
function checkSkipped({ path, called }: Titled, file: string): readonly string[] {
  const title = path.join(" > ");
  if (called.includes("skip") || called.includes("todo")) return [`"${title}" of ${file} is left out.`];
  const conditional = called.includes("skipIf") || called.includes("runIf");
  return conditional && !/\b(where|as root|only root|unless)\b|\$\{/.test(title)
    ? [`"${title}" of ${file} may be left out, and does not say when.`]
    : [];
}

function checkSuite({ suite, point }: ShownBySuite, house: House): readonly string[] {
  const place = (SUITES as Readonly<Record<string, string>>)[suite];
  if (place === undefined) return [`there is no suite ${suite}.`];
  const files = [...house.values()].filter(({ path }) => path === place || path.startsWith(`${place}/`));
  return files.some((file) => says(file, point)) ? [] : [`nothing in ${place} is called "${point}".`];
}

/** Whether a text of this file is exactly that. */
const says = (file: SourceText, point: string): boolean => known(texts, file, textsIn).has(point);

function textsIn(file: SourceText): ReadonlySet<string> {
  const found = new Set<string>();
  for (const node of nodes(parse(file))) if (ts.isStringLiteralLike(node)) found.add(node.text);
  return found;
}

/** Each file is read once, however many rows name it. */
const titles = new WeakMap<SourceText, readonly Titled[]>();
const texts = new WeakMap<SourceText, ReadonlySet<string>>();

function known<T>(cache: WeakMap<SourceText, T>, file: SourceText, read: (file: SourceText) => T): T {
  const found = cache.get(file) ?? read(file);
  cache.set(file, found);
  return found;
}
