import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { manualClock } from "../../../testing/manual-clock.ts";
import { checkOpenFiles, FileWatch } from "./file-watch.ts";

/** A copy of /proc/self of a program with a limit of 100 open files. */
function program() {
  const self = mkdtempSync(join(tmpdir(), "belay-file-watch-"));
  onTestFinished(() => rmSync(self, { recursive: true, force: true }));
  writeFileSync(join(self, "limits"), "Max open files   100   4096   files\n");
  const opens = (count: number): void => {
    rmSync(join(self, "fd"), { recursive: true, force: true });
    mkdirSync(join(self, "fd"));
    // Plus the descriptor of the listing itself.
    for (let fd = 0; fd <= count; fd += 1) writeFileSync(join(self, "fd", String(fd)), "");
  };
  return { self, opens };
}

test("G40: a shortage of files is logged once, and its end is logged once", async () => {
  const { self, opens } = program();
  const clock = manualClock();
  const lines: string[] = [];
  const line =
    (level: string) =>
    (msg: string, fields = {}) =>
      void lines.push(`${level} ${msg} ${JSON.stringify(fields)}`);
  const watch = new FileWatch(clock, { info: line("info"), warn: line("warn") }, self);
  opens(88);
  await clock.advance(10_000);
  expect(lines).toEqual([]);
  opens(89);
  await clock.advance(10_000);
  expect(lines).toEqual([expect.stringMatching(/^warn too many files are open.*"openFilesMax":100.*ulimit -n/)]);
  opens(20);
  await clock.advance(10_000);
  expect(lines.slice(1)).toEqual(["info enough files can be opened again {}"]);
  watch.close();
  opens(99);
  await clock.advance(10_000);
  expect(lines).toHaveLength(2);
});

test("a server does not start with a limit of fewer files than it needs", () => {
  expect(() => checkOpenFiles(63)).toThrow(/At most 63 files/);
  expect(() => checkOpenFiles(64)).not.toThrow();
  expect(() => checkOpenFiles(undefined)).not.toThrow();
});
