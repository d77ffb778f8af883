import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { listProc, parseStat, readProc } from "./proc-file.ts";

const NUMBERS = [1, 12, 13, 0, -1, 0, 0, 0, 0, 0, 1, 2, 0, 0, 20, 0, 4, 0, 4711, 9, 9];
const lineOf = (numbers: readonly unknown[], state = "S", name = "sh"): string =>
  `12 (${name}) ${state} ${numbers.join(" ")}\n`;

test("an entry of the table is read by its columns, whatever the program calls itself", () => {
  const stat = { pid: 12, state: "S", parent: 1, group: 12, session: 13, threads: 4, startTime: 4711, kernel: false };
  expect(parseStat(12, lineOf(NUMBERS))).toEqual(stat);
  expect(parseStat(12, lineOf(NUMBERS, "S", "a) R 9 9 (b) "))).toEqual(stat);
  expect(parseStat(12, lineOf(NUMBERS.with(5, 0x0020_0040)))?.kernel).toBe(true);
});

test.each([
  ["nothing", ""],
  ["no state", lineOf(NUMBERS, "")],
  ["a state that is none", lineOf(NUMBERS, "SS")],
  ["too few columns", lineOf(NUMBERS.slice(0, 18))],
  ["hardly a column", lineOf(NUMBERS.slice(0, 1))],
  ["a parent that is no number", lineOf(NUMBERS.with(0, Number.NaN))],
  ["a group that is no number", lineOf(NUMBERS.with(1, Number.NaN))],
  ["a session that is no number", lineOf(NUMBERS.with(2, Number.NaN))],
  ["flags that are no number", lineOf(NUMBERS.with(5, Number.NaN))],
  ["threads that are no number", lineOf(NUMBERS.with(16, Number.NaN))],
  ["a start that is no number", lineOf(NUMBERS.with(18, Number.NaN))],
])("an entry that cannot be read is none: %s", (_, text) => {
  expect(parseStat(12, text)).toBeUndefined();
});

test("a file is read whole, and one that is not there is gone, also below a file; nothing stays open", () => {
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

test("a directory that is not there has nothing in it", () => {
  expect(listProc("/no/such/place")).toEqual([]);
});
