import { execFileSync } from "node:child_process";
import {
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { COOKIE_NAME } from "../launch/environment.ts";
import { ProcessScanner } from "./scan-thread.ts";

let root = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "belay-scan-thread-"));
  mkdirSync(join(root, "sys/kernel/random"), { recursive: true });
  writeFileSync(join(root, "sys/kernel/random/boot_id"), "boot\n");
  writeFileSync(join(root, "loadavg"), "0 0 0 1/1 900\n");
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Writes a process into the table. Returns the path of its environment. */
function process(pid: number, environment: string | "fifo"): string {
  const dir = join(root, String(pid));
  mkdirSync(dir);
  writeFileSync(join(dir, "stat"), `${pid} (x) S 1 ${pid} ${pid} 0 -1 0${" 0".repeat(10)} 1 0 ${pid} 0\n`);
  const file = join(dir, "environ");
  if (environment === "fifo") execFileSync("mkfifo", [file]);
  else writeFileSync(file, environment);
  return file;
}

/** Unblocks the reader of the pipe, and puts a file in its place. */
function release(file: string, environment: string): void {
  renameSync(file, `${file}.old`);
  writeFileSync(file, environment);
  const fd = openSync(`${file}.old`, constants.O_WRONLY);
  writeSync(fd, "A=1\0");
  closeSync(fd);
}

describe("G12: a process whose environment cannot be read", () => {
  test("does not block the event loop, fails the scan, and is omitted from the next one", async () => {
    process(11, `${COOKIE_NAME}=proc_a.1:one\0`);
    const file = process(12, "fifo");
    process(13, `${COOKIE_NAME}=proc_a.1:one\0`);
    const thread = new ProcessScanner();
    const scan = thread.scan(root);
    let turns = 0;
    let isOver = false;
    const over = scan
      .catch(() => undefined)
      .finally(() => {
        isOver = true;
      });
    while (!isOver) {
      turns += 1;
      await pause(5);
    }
    await over;
    await expect(scan).rejects.toThrow("A process could not be read in time.");
    expect(turns).toBeGreaterThan(10);

    const next = await thread.scan(root);
    expect(next.map(({ pid, cookies }) => [pid, cookies.length]).toSorted()).toEqual([
      [11, 1],
      [12, 0],
      [13, 1],
    ]);

    release(file, `${COOKIE_NAME}=proc_a.1:two\0`);
    await expect
      .poll(async () => (await thread.scan(root)).find(({ pid }) => pid === 12)?.cookies, { timeout: 10_000 })
      .toEqual(["proc_a.1:two"]);
  });

  test("occupies a thread each, and with too many of them scans fail, so no process is reported dead", async () => {
    const files = [1, 2, 3, 4].map((pid) => process(pid, "fifo"));
    const thread = new ProcessScanner();
    for (const _ of files) await expect(thread.scan(root)).rejects.toThrow("in time");
    await expect(thread.scan(root)).rejects.toThrow("Too many processes cannot be read.");
    for (const file of files) release(file, "A=1\0");
    const seen = (): Promise<number> =>
      thread.scan(root).then(
        (all) => all.length,
        () => 0,
      );
    await expect.poll(seen, { timeout: 10_000 }).toBe(4);
  });
});

test("processes with cookies are reported during the scan", async () => {
  process(11, `${COOKIE_NAME}=proc_a.1:one\0`);
  process(12, "A=1\0");
  const met: number[] = [];
  const all = await new ProcessScanner().scan(root, ({ pid }) => met.push(pid));
  expect(met).toEqual([11]);
  expect(all).toHaveLength(2);
});

test("a scan of a missing table fails, and the next one succeeds", async () => {
  const thread = new ProcessScanner();
  await expect(thread.scan(join(root, "nowhere"))).rejects.toThrow("boot_id cannot be read");
  process(11, "A=1\0");
  await expect(thread.scan(root)).resolves.toHaveLength(1);
});
