import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openFiles, openFilesMax } from "../../system/open-files.ts";
import { isShortOfFiles } from "./file-limit.ts";

let self = "";
beforeEach(() => {
  self = mkdtempSync(join(tmpdir(), "belay-file-limit-"));
});
afterEach(() => rmSync(self, { recursive: true, force: true }));

function program(open: number, max: string): void {
  mkdirSync(join(self, "fd"));
  for (let fd = 0; fd <= open; fd += 1) writeFileSync(join(self, "fd", String(fd)), "");
  writeFileSync(
    join(self, "limits"),
    `Limit   Soft Limit   Hard Limit   Units\nMax open files   ${max}   4096   files\n`,
  );
}

test.each([
  [70, 0, false],
  [88, 0, false],
  [89, 0, true],
  [79, 10, true],
  [78, 10, false],
])("G40: of 100 files 12 are kept for stops: %d open, %d wanted", (open, wanted, isShort) => {
  program(open, "100");
  expect([openFiles(self), openFilesMax(self)]).toEqual([open, 100]);
  expect(isShortOfFiles(wanted, self)).toBe(isShort);
});

test("a system without a readable limit, or with none, is never short", () => {
  expect(isShortOfFiles(1, self)).toBe(false);
  program(10, "unlimited");
  expect([openFilesMax(self), isShortOfFiles(1_000_000, self)]).toEqual([undefined, false]);
});
