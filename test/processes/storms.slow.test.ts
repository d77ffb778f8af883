// Stops beside fork storms, in a program of its own: this one is starved by them as the server is.
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { findCpuGroups, sharesBySession } from "../../src/process/containment/cpu-share.ts";
import { lookAtMachine } from "../../src/process/containment/machine.ts";

const STORMS = 3;
const SHELLS = 80;
const UID = 23_457;
/** By which a tree is dead after its cancel (G19). The program gives its trees a grace of half of it. */
const DEAD_MS_MAX = 2_000;

const folder = mkdtempSync(join(tmpdir(), "belay-storms-"));
chmodSync(folder, 0o755);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Stopped {
  readonly quietMs: readonly number[];
  readonly stormsMs: readonly number[];
}

/** Throws if a stop does not settle, a process escapes, or the program takes longer than it may. */
function stormy(name: string, rounds: number, uid?: number): Stopped {
  const dir = join(folder, name);
  mkdirSync(dir, { mode: 0o700 });
  const program = join(import.meta.dirname, "stormy-server.ts");
  const words = [process.execPath, program, dir, `${STORMS}`, `${SHELLS}`, `${rounds}`];
  const env = { PATH: process.env.PATH, HOME: dir, TMPDIR: dir };
  if (uid !== undefined) chownSync(dir, uid, uid);
  const [file = "", ...args] =
    uid === undefined ? words : ["setpriv", `--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", "--", ...words];
  return JSON.parse(execFileSync(file, args, { encoding: "utf8", env, timeout: 90_000, killSignal: "SIGKILL" }));
}

const { root, programs } = lookAtMachine();
const isShielded = !sharesBySession() || findCpuGroups() !== undefined;

test.skipIf(!root || !isShielded)(
  "G19, G40: beside three fork storms a tree that ignores its stop is dead in time, and so are the storms (as root)",
  { timeout: 100_000 },
  () => {
    const { quietMs, stormsMs } = stormy("root", 4);
    expect([quietMs.length, stormsMs.length]).toEqual([4, STORMS]);
    expect(Math.max(...quietMs, ...stormsMs)).toBeLessThanOrEqual(DEAD_MS_MAX);
  },
);

const isReadable = (): boolean => {
  try {
    execFileSync("setpriv", [`--reuid=${UID}`, "--clear-groups", "test", "-r", import.meta.filename]);
    return true;
  } catch {
    return false;
  }
};

// Where the kernel shares the processor by session, only root can keep a share for the server; doctor says so.
test.skipIf(!root || programs.setpriv === undefined || !isReadable())(
  "G19: beside three fork storms every stop of an ordinary user is carried out, however long it takes",
  { timeout: 100_000 },
  () => {
    const { quietMs, stormsMs } = stormy("ordinary", 1, UID);
    expect([quietMs.length, stormsMs.length]).toEqual([1, STORMS]);
    if (!sharesBySession()) expect(Math.max(...quietMs, ...stormsMs)).toBeLessThanOrEqual(DEAD_MS_MAX);
  },
);
