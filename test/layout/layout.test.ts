import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT, sources } from "../fixtures/repository.ts";
import { drawLayout } from "./draw.ts";
import { measureLayout } from "./layout.ts";

test("src has no cycle, no two folders that import each other, no long file and no full folder", () => {
  const { edges, ...findings } = measureLayout(sources());
  expect(findings).toEqual({ cycles: [], mutual: [], filesOver400: [], foldersOver25: [] });
  expect(drawLayout(edges), "run `npm run layout`").toBe(readFileSync(join(ROOT, "docs/layout.svg"), "utf8"));
});

const file = (path: string, ...imports: readonly string[]) => ({
  path,
  text: imports.map((one) => `import "${one}";\n`).join(""),
});

test("finds a cycle of files and two folders that import each other", () => {
  const layout = measureLayout([file("src/a/one.ts", "../b/two.ts"), file("src/b/two.ts", "../a/one.ts")]);
  expect(layout.cycles).toEqual(["src/a/one.ts -> src/b/two.ts -> src/a/one.ts"]);
  expect(layout.mutual).toEqual(["a and b"]);
});

test("finds two folders that import each other without a cycle of files", () => {
  const files = [file("src/a/one.ts", "../b/two.ts"), file("src/b/two.ts"), file("src/b/three.ts", "../a/one.ts")];
  expect(measureLayout(files)).toMatchObject({ cycles: [], mutual: ["a and b"] });
});

test("finds a file of 401 lines, and not one of 400", () => {
  const lines = (count: number) => "x;\n".repeat(count);
  const files = [
    { path: "src/a/long.ts", text: lines(401) },
    { path: "src/a/fits.ts", text: lines(400) },
  ];
  expect(measureLayout(files).filesOver400).toEqual(["src/a/long.ts"]);
});

test("finds a folder of 26 files, and counts neither tests nor subfolders", () => {
  const files = Array.from({ length: 26 }, (_, index) => file(`src/a/f${index}.ts`));
  expect(measureLayout(files).foldersOver25).toEqual(["src/a (26 files)"]);
  const spread = [...files.slice(1), file("src/a/f0.test.ts"), file("src/a/sub/f0.ts")];
  expect(measureLayout(spread).foldersOver25).toEqual([]);
});

test("draws importers above what they import", () => {
  const svg = drawLayout([{ from: "upper", to: "lower", imports: 1 }]);
  const heightOf = (name: string) => Number(new RegExp(`y="([\\d.]+)" text-anchor="middle">${name}<`).exec(svg)?.[1]);
  expect(heightOf("upper")).toBeLessThan(heightOf("lower"));
});
