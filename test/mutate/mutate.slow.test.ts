// The hunt for mutants, hunted: what counts as noticed, who is known, and a real hunt in a small file.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "../fixtures/repository.ts";
import { rooms } from "./rooms.ts";
import { scoreOf, tallyOf } from "./score.ts";

test("a mutant no test reaches has survived; what never ends was noticed; what was not tried counts as neither", () => {
  const tally = tallyOf(["Killed", "Killed", "Timeout", "Survived", "NoCoverage", "Ignored", "RuntimeError"]);
  expect(tally).toEqual({ killed: 3, survived: 2, ignored: 2 });
  expect(scoreOf(tally)).toBe(60);
});

test("a score that is just missed is missed, and nothing tried is no score", () => {
  expect(scoreOf({ killed: 84_999, survived: 15_001, ignored: 0 })).toBeLessThan(85);
  expect(scoreOf({ killed: 0, survived: 0, ignored: 9 })).toBe(0);
});

test("no test of a room asks the framework for what it has only under its own runner", () => {
  const lookers = rooms().flatMap(({ tests }) => tests);
  const asks = (file: string): boolean => /\bvi\.(?:stub|unstub)/.test(readFileSync(join(ROOT, file), "utf8"));
  expect(lookers.filter(asks)).toEqual([]);
});

test("every room has files and tests, and no test is a file to be mutated", () => {
  for (const { name, mutate, tests } of rooms()) {
    expect(mutate.length, name).toBeGreaterThan(5);
    expect(tests.length, name).toBeGreaterThan(5);
    expect(mutate.filter((file) => file.includes(".test."))).toEqual([]);
    expect([...mutate, ...tests].filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  }
});

test("a hunt in one file that the seed chooses notices mutants, and ends with its line", { timeout: 120_000 }, () => {
  const words = [join(ROOT, "test/mutate/main.ts"), "--sample", "--seed", "7", "--json"];
  const { stdout, stderr, status } = spawnSync(process.execPath, words, { cwd: ROOT, encoding: "utf8" });
  const line: unknown = JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "");
  expect(line).toMatchObject({ suite: "mutate", seed: 7, rooms: { core: { killed: expect.any(Number) } } });
  expect(Reflect.get(Object(line), "mutants")).toBeGreaterThan(0);
  expect(stderr).toContain("Replay it with: npm run mutate -- --sample --seed 7");
  expect(status).toBe(0);
});
