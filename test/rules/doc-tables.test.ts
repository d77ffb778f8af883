import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";
import { filesUnder, ROOT } from "../fixtures/repository.ts";
import { current, TABLES } from "./doc-tables.ts";

test.each([...new Set(TABLES.map((one) => one.page))])(
  "the tables of %s are current (node test/rules/doc-tables.ts)",
  (page) => {
    const text = readFileSync(join(ROOT, page), "utf8");
    expect(text).toBe(current(page, text));
  },
);

const pages = filesUnder(".").filter(({ path }) => path.endsWith(".md"));

test("every link from one page to another file leads somewhere", () => {
  const broken: string[] = [];
  for (const { path, text } of pages) {
    for (const [, target] of text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)) {
      if (target === undefined || /^[a-z]+:/.test(target)) continue;
      if (!existsSync(join(ROOT, normalize(join(dirname(path), target))))) broken.push(`${path}: ${target}`);
    }
  }
  expect(broken).toEqual([]);
});

test("every file that a page names in code letters exists", () => {
  const missing: string[] = [];
  for (const { path, text } of pages) {
    for (const [, named] of text.matchAll(
      /`((?:src|test|examples|docs|sim|bench|bin|changes)\/[\w./-]+\.(?:ts|mjs|md|js))`/g,
    )) {
      if (named !== undefined && !existsSync(join(ROOT, named))) missing.push(`${path}: ${named}`);
    }
  }
  expect(missing).toEqual([]);
});

test("decisions are dated, and say what was decided and at what price", () => {
  const decisions = pages.filter(({ path }) => path.startsWith("docs/decisions/"));
  expect(decisions.length).toBeGreaterThan(0);
  for (const { path, text } of decisions) {
    expect(path).toMatch(/^docs\/decisions\/\d{4}-\d{2}-\d{2}-[a-z0-9-]+\.md$/);
    for (const part of ["## Context", "## Decision", "## Alternatives", "## Consequences"])
      expect(text).toContain(part);
  }
});

test("every promise in the README's table is tested where it says", () => {
  const readme = readFileSync(join(ROOT, "README.md"), "utf8");
  const rows = readme.split("\n").filter((line) => /^\| \*\*G\d+\*\*/.test(line));
  expect(rows.length).toBeGreaterThan(10);
  for (const row of rows) {
    const guarantee = /G\d+/.exec(row)?.[0];
    const files = [...row.matchAll(/\]\(([^)]+)\)/g)].map(([, file]) => file ?? "");
    expect(files.length, row).toBeGreaterThan(0);
    for (const file of files) {
      expect(readFileSync(join(ROOT, file), "utf8"), `${guarantee} in ${file}`).toMatch(
        new RegExp(`\\b${guarantee}\\b`),
      );
    }
  }
});
