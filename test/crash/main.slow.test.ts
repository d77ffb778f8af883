// What `npm run crash` says of a run that shows nothing, and what it leaves when it is stopped.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const MAIN = join(import.meta.dirname, "main.ts");

let temporary = "";
beforeEach(() => {
  temporary = realpathSync(mkdtempSync(join(tmpdir(), "belay-crash-main-")));
});
afterEach(() => rmSync(temporary, { recursive: true, force: true }));

const ask = (...flags: readonly string[]) =>
  spawnSync(process.execPath, [MAIN, ...flags], { encoding: "utf8", env: { ...process.env, TMPDIR: temporary } });

describe("nothing lost of nothing is no evidence", { timeout: 120_000 }, () => {
  test("no kills at all are refused", () => {
    const { status, stdout, stderr } = ask("--kills", "0");
    expect(stderr).toBe("--kills takes a whole number from 1 on, not 0: without a kill nothing is shown.\n");
    expect(stdout).toBe("");
    expect(status).toBe(2);
  });

  test("a run in which nothing was acknowledged does not hold, and says what to do", () => {
    // A server that dies as it opens its file has told nobody anything.
    const { status, stdout, stderr } = ask("--kills", "1", "--point", "open:before-checkpoint", "--json");
    const result = JSON.parse(stdout);
    expect(result).toMatchObject({ suite: "crash", kills: 1, acked: 0, lost: 0, withoutOutcome: 0, twoOutcomes: 0 });
    expect(result).toMatchObject({ repeatedCalls: 0, stuck: 0, violations: 0 });
    expect(stderr).toContain(
      "Nothing was acknowledged, so nothing could be lost: this shows nothing. Use more --kills.",
    );
    expect(status).toBe(1);
  });
});

describe("a loop that is stopped by a signal", () => {
  /** Its servers name their files below this directory. */
  const servers = (): readonly string[] =>
    readdirSync("/proc").filter((pid) => {
      try {
        return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(temporary);
      } catch {
        return false; // Gone meanwhile.
      }
    });
  test.each([
    ["SIGINT", 1],
    ["SIGTERM", 1],
    // As a terminal and npm send it, each on its own.
    ["SIGINT", 2],
  ] as const)("leaves no folder and no process behind: %s, %i times", { timeout: 60_000 }, async (signal, times) => {
    const loop = spawn(process.execPath, [MAIN, "--kills", "50"], {
      ...{ env: { ...process.env, TMPDIR: temporary }, stdio: ["ignore", "ignore", "pipe"] },
    });
    const exited = once(loop, "exit");
    let said = "";
    loop.stderr.on("data", (data: Buffer) => {
      said += data.toString();
    });
    await expect.poll(servers, { timeout: 30_000 }).not.toEqual([]);
    loop.kill(signal);
    await expect.poll(() => said, { timeout: 30_000 }).toContain(`stopped by ${signal}`);
    if (times === 2) loop.kill(signal);
    expect(await exited).toEqual([128 + constants.signals[signal], null]);
    await expect.poll(servers, { timeout: 10_000 }).toEqual([]);
    expect(readdirSync(temporary)).toEqual([]);
  });
});
