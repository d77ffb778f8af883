import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { listProc, parseStat, readProc } from "./proc-file.ts";

const NUMBERS = [1, 12, 13, 0, -1, 0, 0, 0, 0, 0, 1, 2, 0, 0, 20, 0, 4, 0, 4711, 9, 9];
const lineOf = (numbers: readonly unknown[], state = "S", name = "sh"): string =>
  `12 (${name}) ${state} ${numbers.join(" ")}\n`;

test("`parseStat` reads the columns, whatever the program's name contains", () => {
  const stat = { pid: 12, state: "S", parent: 1, group: 12, session: 13, threads: 4, startTime: 4711, kernel: false };
  expect(parseStat(12, lineOf(NUMBERS))).toEqual(stat);
  expect(parseStat(12, lineOf(NUMBERS, "S", "a) R 9 9 (b) "))).toEqual(stat);
  expect(parseStat(12, lineOf(NUMBERS.with(5, 0x0020_0040)))?.kernel).toBe(true);
});

test.each([
  ["nothing", ""],
  ["no state", lineOf(NUMBERS, "")],
  ["an invalid state", lineOf(NUMBERS, "SS")],
  ["too few columns", lineOf(NUMBERS.slice(0, 18))],
  ["one column", lineOf(NUMBERS.slice(0, 1))],
  ["a parent that is not a number", lineOf(NUMBERS.with(0, Number.NaN))],
  ["a group that is not a number", lineOf(NUMBERS.with(1, Number.NaN))],
  ["a session that is not a number", lineOf(NUMBERS.with(2, Number.NaN))],
  ["flags that are not a number", lineOf(NUMBERS.with(5, Number.NaN))],
  ["threads that are not a number", lineOf(NUMBERS.with(16, Number.NaN))],
  ["a start that is not a number", lineOf(NUMBERS.with(18, Number.NaN))],
])("`parseStat` rejects a line that is incomplete or invalid: %s", (_, text) => {
  expect(parseStat(12, text)).toBeUndefined();
});

test("`readProc` reads a whole file, reports a missing one as gone, and leaves no descriptor open", () => {
  const dir = mkdtempSync(join(tmpdir(), "belay-proc-file-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const long = Buffer.alloc(40_000, "abc");
  writeFileSync(join(dir, "long"), long);
  writeFileSync(join(dir, "empty"), "");
  const before = readdirSync("/proc/self/fd").length;
  for (let times = 0; times < 5; times += 1) {
    expect(readProc(join(dir, "long"))).toEqual(long);
    expect(readProc(join(dir, "empty"))).toEqual(Buffer.alloc(0));
    expect([readProc(join(dir, "not")), readProc(join(dir, "long/x")), readProc(dir)]).toEqual([
      ...["gone", "gone", "failed"],
    ]);
  }
  expect(readdirSync("/proc/self/fd").length).toBe(before);
});

test("`listProc` returns an empty list for a missing directory", () => {
  expect(listProc("/no/such/place")).toEqual([]);
});
