// Counts words that make a text harder to read than it needs to be, by area. The counts may only fall.
//
//   npm run vocabulary               compares the counts with the checked-in limits
//   npm run vocabulary -- --write    lowers the limits to the counts; it never raises one
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { filesUnder, isTest, nodes, parse, ROOT, type SourceText, sources } from "../fixtures/repository.ts";
import { publicComments } from "./surface.ts";

// Spelled in halves, so that the count does not find this file.
const WORDS = [
  ...["who|ever", "no|body", "some|body", "every|body", "goes| on", "is| told", "is| said", "of its| own"],
  ...["takes?| back", "ho|uses?", "de|sks?", "do|ors?", "do|ings"],
].map((word) => word.replace("|", ""));

const FOUND = new RegExp(`\\b(?:${WORDS.join("|")})\\b`, "gi");

export interface Found {
  readonly where: string;
  readonly text: string;
}

/** What each area consists of. */
export const AREAS: Readonly<Record<string, () => readonly Found[]>> = {
  "public doc comments": publicComments,
  "test titles": () => sources().flatMap(testTitles),
  "strings in src": () => sources().filter(isSource).flatMap(strings),
  src: () => sources().filter(isSource).map(whole),
  docs: () => filesUnder("docs").filter(isPage).map(whole),
  README: () =>
    filesUnder(".")
      .filter(({ path }) => path === "README.md")
      .map(whole),
};

/** How often the words stand in a text. Parts of names in camel case count as words. */
export const countWords = (text: string): number =>
  [...text.replace(/([a-z0-9])([A-Z])/g, "$1 $2").matchAll(FOUND)].length;

export function countAreas(): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(AREAS).map(([area, read]) => [area, read().reduce((sum, { text }) => sum + countWords(text), 0)]),
  );
}

const LIMITS = join(ROOT, "test/rules/vocabulary.json");

export const readLimits = (): Readonly<Record<string, number>> => JSON.parse(readFileSync(LIMITS, "utf8"));

const isSource = ({ path }: SourceText): boolean => path.startsWith("src/") && !isTest(path);
const isPage = ({ path }: SourceText): boolean => path.endsWith(".md");
const whole = ({ path, text }: SourceText): Found => ({ where: path, text });

function testTitles(file: SourceText): readonly Found[] {
  if (!isTest(file.path)) return [];
  const titles: Found[] = [];
  for (const node of nodes(parse(file))) {
    if (!ts.isCallExpression(node)) continue;
    let callee: ts.Node = node.expression;
    while (ts.isCallExpression(callee) || ts.isPropertyAccessExpression(callee)) callee = callee.expression;
    const [title] = node.arguments;
    if (!ts.isIdentifier(callee) || !["describe", "test", "it"].includes(callee.text)) continue;
    if (title !== undefined && ts.isStringLiteralLike(title)) titles.push({ where: file.path, text: title.text });
  }
  return titles;
}

function strings(file: SourceText): readonly Found[] {
  return [...nodes(parse(file))].flatMap((node) =>
    ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node)
      ? [{ where: file.path, text: node.text }]
      : [],
  );
}

function main(): void {
  const counts = countAreas();
  if (process.argv.includes("--write")) {
    const limits = readLimits();
    const lowered = Object.entries(counts).map(([area, count]) => [area, Math.min(count, limits[area] ?? count)]);
    writeFileSync(LIMITS, `${JSON.stringify(Object.fromEntries(lowered), undefined, 2)}\n`);
  }
  const limits = readLimits();
  for (const [area, count] of Object.entries(counts)) {
    process.stdout.write(`${area}: ${count} (limit ${limits[area]})\n`);
    if (process.argv.includes("--list")) {
      for (const { where, text } of AREAS[area]?.() ?? []) {
        const here = countWords(text);
        if (here > 0) process.stdout.write(`  ${here} ${where}\n`);
      }
    }
  }
}

if (import.meta.main) main();
