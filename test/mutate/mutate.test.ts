// The hunt for mutants, hunted: what counts as noticed, who is known, and a real hunt in a small file.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "../house.ts";
import { field, readFigures } from "../reliability/figure.ts";
import { filesOf, rooms } from "./rooms.ts";
import { scoreOf, tallyOf } from "./score.ts";
import { compare, keyOf, markOf, readLookedAt, type Survivor, survivorOf } from "./survivor.ts";

test("a mutant no test reaches has survived; what never ends was noticed; what was not tried counts as neither", () => {
  const tally = tallyOf(["Killed", "Killed", "Timeout", "Survived", "NoCoverage", "Ignored", "RuntimeError"]);
  expect(tally).toEqual({ killed: 3, survived: 2, ignored: 2 });
  expect(scoreOf(tally)).toBe(60);
});

test("a score that is just missed is missed, and nothing tried is no score", () => {
  expect(scoreOf({ killed: 84_999, survived: 15_001, ignored: 0 })).toBeLessThan(85);
  expect(scoreOf({ killed: 0, survived: 0, ignored: 9 })).toBe(0);
});

test("a survivor is known by its text, wherever its line has moved", () => {
  const source = "one();\nif (a > b) stop();\n";
  const location = { start: { line: 2, column: 5 }, end: { line: 2, column: 10 } };
  const found = { fileName: "src/x.ts", mutatorName: "EqualityOperator", replacement: "a >= b", location };
  const survivor = survivorOf(found, source);
  expect(survivor).toMatchObject({ line: "if (a > b) stop();", original: "a > b", replacement: "a >= b" });
  const moved = { start: { line: 3, column: 5 }, end: { line: 3, column: 10 } };
  expect(keyOf(survivorOf({ ...found, location: moved }, `\n${source}`))).toBe(keyOf(survivor));
});

test("who has not been looked at is fresh, and who was looked at and is not alive any more is gone", () => {
  const [one, two, three] = ["a", "b", "c"].map(
    (line): Survivor => ({ file: "src/x.ts", line, mutator: "m", original: "o", replacement: "r" }),
  );
  if (one === undefined || two === undefined || three === undefined) throw new Error("three were made");
  const { fresh, gone } = compare(
    [one, two],
    [two, three].map((survivor) => ({ ...survivor, why: "so" })),
  );
  expect(fresh).toEqual([one]);
  expect(gone).toMatchObject([three]);
});

test("everybody who was looked at may live for a reason, once", () => {
  const lookedAt = readLookedAt();
  expect(lookedAt.filter(({ why }) => why.trim().length < 10)).toEqual([]);
  expect(new Set(lookedAt.map(keyOf)).size).toBe(lookedAt.length);
});

test("everybody who survived in a published hunt has been looked at, and nobody else", () => {
  const figures = readFigures();
  for (const room of rooms().filter(({ name }) => figures.has(`mutate-${name}`))) {
    const survivors = field(figures.get(`mutate-${room.name}`)?.result, "survivors");
    const lookedAt = readLookedAt().filter(({ file }) => filesOf(room).includes(file));
    expect(survivors, room.name).toEqual(lookedAt.map(markOf).toSorted());
  }
});

test("nobody was looked at who lives in no room", () => {
  const files = rooms().flatMap(filesOf);
  expect(readLookedAt().filter(({ file }) => !files.includes(file))).toEqual([]);
});

test("no test of a room asks the framework for what it has only under its own runner", () => {
  const lookers = rooms().flatMap(({ tests, besides }) => [...tests, ...(besides?.tests ?? [])]);
  const asks = (file: string): boolean => /\bvi\.(?:stub|unstub)/.test(readFileSync(join(ROOT, file), "utf8"));
  expect(lookers.filter(asks)).toEqual([]);
});

test("every room has files and tests, and no test is a file to be mutated", () => {
  for (const { name, besides, ...room } of rooms()) {
    for (const { mutate, tests } of [room, besides ?? room]) {
      expect(mutate.length, name).toBeGreaterThan(5);
      expect(tests.length, name).toBeGreaterThan(5);
      expect(mutate.filter((file) => file.includes(".test."))).toEqual([]);
      expect([...mutate, ...tests].filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
    }
  }
});

test("a hunt in one small file notices mutants, and ends with its line", { timeout: 120_000 }, () => {
  const words = ["test/mutate/main.ts", "--room", "core", "--file", "src/core/ids.ts", "--json"];
  const { stdout } = spawnSync(process.execPath, words.with(0, join(ROOT, "test/mutate/main.ts")), {
    cwd: ROOT,
    encoding: "utf8",
  });
  const line: unknown = JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "");
  expect(line).toMatchObject({ suite: "mutate", rooms: { core: { killed: expect.any(Number) } } });
  expect(Reflect.get(Object(line), "mutants")).toBeGreaterThan(0);
  expect(Reflect.get(Object(line), "survived")).toBeLessThan(Number(Reflect.get(Object(line), "mutants")));
});
