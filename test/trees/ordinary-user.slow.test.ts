// The same trees and attacks, as a user without privileges, so that all namespaces are made in a user namespace. There
// is a mount below a protected directory, as on machines with network or container file systems.
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { lookAtMachine } from "../../src/process/containment/machine.ts";

const UID = 23_456;
const folder = mkdtempSync(join(tmpdir(), "belay-ordinary-"));
chmodSync(folder, 0o755);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const { root, programs } = lookAtMachine();

test.skipIf(!root || programs.unshare === undefined || programs.setpriv === undefined)(
  "G19, G38: an ordinary user's trees all die, and attacks have the documented results (where root may change)",
  { timeout: 240_000 },
  () => {
    const below = join(folder, "mounted");
    const own = join(folder, "own");
    for (const path of [below, own]) mkdirSync(path);
    chownSync(own, UID, UID);
    const user = ["setpriv", `--reuid=${UID}`, `--regid=${UID}`, "--clear-groups", "--"];
    const suite = [process.execPath, join(import.meta.dirname, "main.ts"), "--rounds", "1", "--attacks"];
    const script = 'mount -t tmpfs belay "$1" && shift && exec "$@"';
    const { status, stderr } = spawnSync("unshare", ["--mount", "sh", "-c", script, "sh", below, ...user, ...suite], {
      encoding: "utf8",
      env: { PATH: process.env.PATH, HOME: own, TMPDIR: own },
    });
    expect([status, stderr.match(/.*(documented:|SURVIVED|trouble).*/g)]).toEqual([0, null]);
  },
);
