import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "../../system/system-clock.ts";
import { openSpawner } from "../spawner.ts";
import { findCpuGroups, removeEmptyShares, sharesBySession } from "./cpu-share.ts";

let dir = "";
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "belay-cpu-share-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** A simulated /proc/self and /proc/sys. */
function machine(parts: { autogroup: string; cgroup: string; mount: string; weight?: string }) {
  const self = join(dir, "self");
  const sys = join(dir, "sys");
  mkdirSync(self);
  mkdirSync(join(sys, "kernel"), { recursive: true });
  mkdirSync(join(dir, "groups/own"), { recursive: true });
  writeFileSync(join(sys, "kernel/sched_autogroup_enabled"), `${parts.autogroup}\n`);
  writeFileSync(join(self, "cgroup"), `${parts.cgroup}\n`);
  writeFileSync(join(self, "mounts"), `x ${join(dir, "groups")} ${parts.mount} 0 0\n`);
  if (parts.weight !== undefined) writeFileSync(join(dir, "groups/own/cpu.weight"), parts.weight);
  return [self, sys] as const;
}

describe("whether the kernel divides the processor by session", () => {
  test.each([
    ["in the root of version 1", { autogroup: "1", cgroup: "1:cpu,cpuacct:/", mount: "cgroup rw,cpu,cpuacct" }, true],
    ["not where that is switched off", { autogroup: "0", cgroup: "1:cpu:/", mount: "cgroup rw,cpu" }, false],
    ["not in a group of version 1", { autogroup: "1", cgroup: "1:cpu:/own", mount: "cgroup rw,cpu" }, false],
    ["in the root of version 2", { autogroup: "1", cgroup: "0::/", mount: "cgroup2 rw" }, true],
    ["in a group without a weight", { autogroup: "1", cgroup: "0::/own", mount: "cgroup2 rw" }, true],
    ["not in one with a weight", { autogroup: "1", cgroup: "0::/own", mount: "cgroup2 rw", weight: "100" }, false],
  ])("%s", (_, parts, expected) => {
    expect(sharesBySession(...machine(parts))).toBe(expected);
  });

  test("groups of version 2 are used only where they can have a weight", () => {
    const [self] = machine({ autogroup: "1", cgroup: "0::/own", mount: "cgroup2 rw" });
    expect(findCpuGroups(self)).toBeUndefined();
    writeFileSync(join(dir, "groups/cgroup.subtree_control"), "memory cpu pids\n");
    expect(findCpuGroups(self)).toEqual({ dir: join(dir, "groups"), version: 2 });
  });
});

test("groups that a killed server has left are removed, and nothing else", () => {
  for (const name of ["belay.share.one", "belay.share.used/below", "other"]) {
    mkdirSync(join(dir, name), { recursive: true });
  }
  removeEmptyShares({ dir, version: 2 });
  expect(["belay.share.one", "belay.share.used", "other"].map((name) => existsSync(join(dir, name)))).toEqual([
    ...[false, true, true],
  ]);
});

const groups = sharesBySession() ? findCpuGroups() : undefined;

test.skipIf(groups === undefined)(
  "G40: a command runs in a group with a small share, which is removed afterwards",
  async () => {
    const spawner = await openSpawner({ dir, workspace: dir, clock: systemClock, mechanism: "group" });
    const id = `proc_share.${process.pid}` as const;
    const child = await spawner.spawn({
      ...{ id, sessionId: "ses_share", command: "trap '' TERM; setsid sleep 600 & echo up; wait; wait" },
    });
    for await (const page of child.output.follow()) if (page.text.includes("up")) break;
    const line = /\/belay\.share\..+$/m.exec(readFileSync(`/proc/${child.pid}/cgroup`, "utf8"));
    const group = join(groups?.dir ?? "", line?.[0] ?? "not in one");
    const [file, server] = groups?.version === 1 ? (["cpu.shares", 1_024] as const) : (["cpu.weight", 100] as const);
    expect(Number(readFileSync(join(group, file), "utf8")) * 9).toBeLessThan(server);
    child.stop(0);
    await child.ended;
    expect(existsSync(group)).toBe(false);
    await spawner.close();
  },
);
