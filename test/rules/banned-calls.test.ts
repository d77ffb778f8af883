// Time, chance and the world enter at a few named places only: this is what makes the same seed the same run (G34).
import { describe, expect, test } from "vitest";
import { sources } from "../fixtures/repository.ts";
import { callFindings, PERMITS } from "./call-rules.ts";

const files = sources();

test("G34: nothing reaches out of the program without a permit", {
  meta: { id: "G34/banned-calls-need-permit" },
}, () => {
  expect(files.flatMap(callFindings)).toEqual([]);
});

test("every permit says why", () => {
  for (const permit of PERMITS) expect(permit.because).toMatch(/\w+ \w+/);
});

describe("each rule bites", () => {
  test.each([
    ["const now = Date.now();", "time"],
    ["const now = new Date();", "time"],
    ["const now = globalThis.Date.now();", "time"],
    ["const now = performance.now();", "time"],
    ['import { performance } from "node:perf_hooks";', "time"],
    ["const roll = Math.random();", "chance"],
    ["const id = crypto.randomUUID();", "chance"],
    ['import { randomBytes } from "node:crypto";', "chance"],
    ["setTimeout(go, 1);", "timers"],
    ["const stop = setInterval(go, 1);", "timers"],
    ["queue(setImmediate);", "timers"],
    ['import { setTimeout as wait } from "node:timers/promises";', "timers"],
    ['import { spawn } from "node:child_process";', "processes"],
    ['const files = await import("node:fs");', "files"],
    ['export { readFile } from "node:fs/promises";', "files"],
    ['import { Worker } from "node:worker_threads";', "threads"],
    ["const home = process.env.HOME;", "this process"],
    ["process.exit(1);", "this process"],
    ['import process from "node:process";', "this process"],
    ["await store.append(batch);", "the log"],
    ["await this.#store.append(batch);", "the log"],
    ["await ports.store.append(batch);", "the log"],
  ])("%s reaches for %s", (text, reach) => {
    for (const path of ["src/core/a.ts", "src/engine/work/driver.ts", "src/http/a.ts", "sim/a.ts"]) {
      expect(callFindings({ path, text })).toEqual([expect.stringContaining(`reaches for ${reach}`)]);
    }
  });

  test.each([
    ["src/engine/work/driver.ts", "const at = clock.now(); work.process = 1; type P = NodeJS.Process;"],
    ["src/engine/work/driver.ts", "function stop(process: Child) { process.stop(); }"],
    ["src/engine/work/driver.ts", "const a = { Date: 1, process: 2 }; list.append(1);"],
    ["src/engine/work/driver.ts", 'import type { Worker } from "node:worker_threads";'],
    ["src/system/system-clock.ts", "setTimeout(go, Date.now());"],
    ["src/engine/log/commit.ts", "this.#store.append(batch);"],
    ["src/store/sqlite/a.ts", 'import { Worker } from "node:worker_threads";'],
    ["src/cli/main.ts", "process.exitCode = 1;"],
    ["src/engine/work/driver.test.ts", "Date.now();"],
  ])("%s may say %s", (path, text) => {
    expect(callFindings({ path, text })).toEqual([]);
  });

  test("a permit is for what it names, and for nothing else", () => {
    expect(callFindings({ path: "src/system/system-clock.ts", text: "Math.random();" })).toHaveLength(1);
    expect(callFindings({ path: "src/engine/system-clock-two.ts", text: "Date.now();" })).toHaveLength(1);
    expect(callFindings({ path: "src/store/sqlite/a.ts", text: "store.append(batch);" })).toHaveLength(1);
  });
});
