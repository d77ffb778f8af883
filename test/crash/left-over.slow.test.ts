// What the crash loop sees of processes that have outlived a server, whatever they carry.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { playRound } from "./round.ts";

let base = "";
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "belay-left-over-")));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

/** In no ledger, and with nothing of a command of this round: as what a self-test leaves. */
function plant(cwd: string): ChildProcess {
  mkdirSync(cwd, { recursive: true });
  const env = { PATH: process.env.PATH, BELAY_PROCESS: "proc_selftest.1:planted" };
  const child = spawn("/bin/sh", ["-c", "exec sleep 8000901"], { cwd, env, detached: true, stdio: "ignore" });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  return child;
}

test("G20: a process that a server has left and that no ledger names is found, and no stranger is", {
  timeout: 120_000,
}, async () => {
  const dir = join(base, "r0");
  const stranger = plant(join(base, "r00", "workspace"));
  const planted: ChildProcess[] = [];
  const { findings } = await playRound({
    ...{ seed: 7, number: 0, kills: 1, dir, cache: join(base, "cache"), points: ["open:before-checkpoint"] },
    onKill: () => planted.push(plant(join(dir, "workspace"))),
  });
  const found = findings.map(({ kind, message }) => `${kind}: ${message}`);
  expect(found).toHaveLength(1);
  expect(found[0]).toMatch(
    new RegExp(`^processesLeft: ${planted[0]?.pid} \\(sleep 8000901\\) .* after the next server`),
  );
  // What was found does not outlive the round; who is not of it is not touched.
  if (planted[0]?.signalCode === null) await once(planted[0], "exit");
  expect(planted[0]?.signalCode).toBe("SIGKILL");
  expect(stranger.signalCode).toBeNull();
});
