// G20: a machine that has no file left to start a command with.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";

const home = mkdtempSync(join(tmpdir(), "belay-few-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

test("without a file left a command is tried again, then refused with a code; with one it starts", {
  timeout: 60_000,
  meta: { id: "process/no-descriptors-left" },
}, () => {
  const child = join(import.meta.dirname, "shortage-child.ts");
  const { stdout, stderr } = spawnSync("sh", ["-c", 'ulimit -n 64; exec "$0" "$1"', process.execPath, child], {
    encoding: "utf8",
    cwd: home,
    env: { PATH: process.env.PATH, TMPDIR: home },
  });
  const [first, again, refused, unwritten, after, left] = JSON.parse(stdout.trim() || JSON.stringify([{ stderr }]));
  expect(first).toEqual({ code: 0, pauses: 0 });
  // One attempt has failed, and the next one came when there was room.
  expect(again).toEqual({ code: 0, pauses: expect.toSatisfy((count: number) => count > 0) });
  expect(refused).toMatchObject({ refused: "not_started", message: expect.stringContaining("no room") });
  expect(refused.pauses).toBeGreaterThan(1);
  // Not even what is about to be done could be written down, so it is not done.
  expect(unwritten).toMatchObject({ refused: "not_started", message: expect.stringContaining("ledger") });
  expect(after).toEqual({ code: 0, pauses: 0 });
  expect(left).toEqual({ ledger: [] });
});
