// Stops beside fork storms, in a separate program: the storms starve this one as well as the server.
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { Mechanism } from "../../src/ports/spawner.ts";
import { findCpuGroups, sharesBySession } from "../../src/process/containment/cpu-share.ts";
import { lookAtMachine } from "../../src/process/containment/machine.ts";
import { here } from "../fixtures/mechanisms-here.ts";

const STORMS = 3;
const SHELLS = 60;
const UID = 23_457;
/** The time limit for a tree to be dead after its cancel (G19). The program gives its trees half of it as grace. */
const DEAD_MS_MAX = 2_000;

const folder = mkdtempSync(join(tmpdir(), "belay-storms-"));
chmodSync(folder, 0o755);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Stopped {
  readonly quietMs: readonly number[];
  readonly stormsMs: readonly number[];
}

/** Throws if a stop does not settle, a process escapes, or the program exceeds its timeout. */
function stormy(mechanism: Mechanism | "best", rounds: number, uid?: number): Stopped {
  const dir = join(folder, `${mechanism}-${uid ?? "root"}`);
  mkdirSync(dir, { mode: 0o700 });
  const program = join(import.meta.dirname, "stormy-server.ts");
  const words = [process.execPath, program, dir, `${STORMS}`, `${SHELLS}`, `${rounds}`, mechanism];
  const env = { PATH: process.env.PATH, HOME: dir, TMPDIR: dir };
  if (uid !== undefined) chownSync(dir, uid, uid);
  const [file = "", ...args] =
    uid === undefined ? words : ["setpriv", `--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", "--", ...words];
  return JSON.parse(execFileSync(file, args, { encoding: "utf8", env, timeout: 90_000, killSignal: "SIGKILL" }));
}

const { root, programs } = lookAtMachine();
const isShielded = !sharesBySession() || findCpuGroups() !== undefined;

// In tier `cgroup` all processes of the machine are scanned once more before a tree is reported dead.
const IN_TIME: readonly Mechanism[] = ["bubblewrap", "unshare", "anchor"];

describe.skipIf(!root || !isShielded)("G19, G40: beside three fork storms (as root)", { timeout: 100_000 }, () => {
  test.each(here().filter((one) => IN_TIME.includes(one)))(
    "held by %s, a tree that ignores its stop is dead in time, and so are the storms",
    (mechanism) => {
      const { quietMs, stormsMs } = stormy(mechanism, 2);
      expect([quietMs.length, stormsMs.length]).toEqual([2, STORMS]);
      expect(Math.max(...quietMs, ...stormsMs)).toBeLessThanOrEqual(DEAD_MS_MAX);
    },
  );

  test.runIf(here().includes("cgroup"))("held by cgroup, all of them die", () => {
    const { quietMs, stormsMs } = stormy("cgroup", 1);
    expect([quietMs.length, stormsMs.length]).toEqual([1, STORMS]);
  });
});

const isReadable = (): boolean => {
  try {
    execFileSync("setpriv", [`--reuid=${UID}`, "--clear-groups", "test", "-r", import.meta.filename]);
    return true;
  } catch {
    return false;
  }
};

// Where the kernel divides the processor by session, only root can keep a share for the server; `doctor` reports that.
test.skipIf(!root || programs.setpriv === undefined || !isReadable())(
  "G19: beside three fork storms every stop of an ordinary user is carried out, without a time limit",
  { timeout: 100_000 },
  () => {
    const { quietMs, stormsMs } = stormy("best", 1, UID);
    expect([quietMs.length, stormsMs.length]).toEqual([1, STORMS]);
    if (!sharesBySession()) expect(Math.max(...quietMs, ...stormsMs)).toBeLessThanOrEqual(DEAD_MS_MAX);
  },
);
