// The path through the code in docs/reading-a-cancel.md stays short, and names what is there.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { expect, test } from "vitest";
import { nodes, parse, ROOT } from "../fixtures/repository.ts";

const LINES_MAX = 1_200;

const page = readFileSync(join(ROOT, "docs/reading-a-cancel.md"), "utf8");
const files = [...page.matchAll(/^\d+\. `([^`]+)`/gm)].map(([, file = ""]) => file);

test("the reader's path of a cancel names five files that exist", () => {
  expect(new Set(files).size).toBe(5);
  expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
});

test("the files of the reader's path have fewer than 1,200 lines together", () => {
  const lines = files.map((file) => readFileSync(join(ROOT, file), "utf8").trimEnd().split("\n").length);
  expect(lines.reduce((sum, count) => sum + count, 0)).toBeLessThan(LINES_MAX);
});

test("every function that the reader's path mentions is defined in one of its files", () => {
  const defined = new Set(files.flatMap((path) => functionsOf(readFileSync(join(ROOT, path), "utf8"))));
  const named = [...page.matchAll(/`(\w+)\(\)`/g)].map(([, name = ""]) => name);
  expect(named.length).toBeGreaterThan(0);
  expect(named.filter((name) => !defined.has(name))).toEqual([]);
});

/** The functions, methods and constants of a file. */
function functionsOf(text: string): readonly string[] {
  return [...nodes(parse({ path: "a.ts", text }))].flatMap((node) =>
    (ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node) || ts.isVariableDeclaration(node)) && node.name
      ? [node.name.getText()]
      : [],
  );
}
