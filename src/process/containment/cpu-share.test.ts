import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { HeldTree, LaunchPlan } from "./containment.ts";
import { renice } from "./cpu-share.ts";

/** A number that no process can have. */
const PID = 4_194_305;

test.each([
  ["namespace", "4096"],
  ["cgroup", "4096"],
  // Not killed at once: with a large share a storm would fork faster than it is killed.
  ["anchor", "102"],
  ["group", "102"],
] as const)("G40: a tree of tier %s has a share of %s once it is killed", (tier, expected) => {
  const dir = mkdtempSync(join(tmpdir(), "belay-priority-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const group = join(dir, "belay.share.proc_a.1.x");
  mkdirSync(group);
  for (const name of ["cpu.shares", "cgroup.procs"]) writeFileSync(join(group, name), "");
  const log: string[] = [];
  const tree = { pid: PID, force: () => log.push("forced") } as unknown as HeldTree;
  const { held } = renice(tree, { cookie: "proc_a.1:x" } as LaunchPlan, { tier, groups: { dir, version: 1 } });
  const share = (): string => readFileSync(join(group, "cpu.shares"), "utf8").slice(0, 4);
  expect(share()).toBe("102");
  held.force();
  expect([share(), log]).toEqual([expected, ["forced"]]);
});
