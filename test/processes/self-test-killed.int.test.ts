// The server is killed with -9 during a self-test. Its trees are in no ledger, so the next start does not find them:
// they must end by themselves.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { here } from "../fixtures/mechanisms-here.ts";
import type { Moment } from "./doomed-self-test.ts";

/** It takes milliseconds where the kernel does it, and some tenths of a second where a watchdog scans all processes. */
const GONE_MS_MAX = 10_000;

const MOMENTS: readonly Moment[] = ["gate", "stop", "server-killed"];

let workspace = "";
beforeEach(() => {
  workspace = realpathSync(mkdtempSync(join(tmpdir(), "belay-self-test-killed-")));
});
afterEach(() => rmSync(workspace, { recursive: true, force: true }));

/**
 * The processes with this working directory, including those that have shed their environment. A dead process has none.
 */
function working(): readonly string[] {
  return readdirSync("/proc").flatMap((pid) => {
    try {
      if (!/^\d+$/.test(pid) || readlinkSync(`/proc/${pid}/cwd`) !== workspace) return [];
      return [`${pid}: ${readFileSync(`/proc/${pid}/cmdline`, "latin1").replaceAll("\0", " ").slice(0, 100)}`];
    } catch {
      return []; // Gone meanwhile, or a kernel thread.
    }
  });
}

async function killedAt(moment: Moment, tested: string): Promise<number> {
  const script = join(import.meta.dirname, "doomed-self-test.ts");
  const server = spawn(process.execPath, [script, workspace, tested, moment], { stdio: ["ignore", "pipe", "inherit"] });
  await once(server.stdout, "data");
  const before = working().length;
  server.kill("SIGKILL");
  await once(server, "exit");
  return before;
}

describe.each([...here(), "ps", "nothing"])("G20: a self-test of %s that is killed with -9", (tested) => {
  test.each(MOMENTS)("leaves no process behind, at moment: %s", async (moment) => {
    // The simulated server, the leader, and the command at its gate.
    expect(await killedAt(moment, tested)).toBeGreaterThanOrEqual(3);
    await expect.poll(working, { timeout: GONE_MS_MAX }).toEqual([]);
  });
});

test("G20: a leader that hangs in a self-test killed with -9 is not left behind either", async () => {
  expect(await killedAt("gate", "hanging")).toBe(2);
  await expect.poll(working, { timeout: GONE_MS_MAX }).toEqual([]);
});
