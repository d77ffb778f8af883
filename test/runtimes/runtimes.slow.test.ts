// The lowest and the newest version of each line of Node.js that is supported, and the other runtimes: each with a
// prompt, a live stream, a process, a stop and a restart, by the package as it is published.
import { spawnSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { installedRuntimes, projectWithBelay } from "./built-package.ts";

/** Where each is, below `node_modules`, and the words before the program. */
const RUNTIMES: Readonly<Record<string, readonly [string, ...string[]]>> = {
  "Node.js 22.13, the lowest": ["node-22-first/bin/node"],
  "Node.js 22, the newest": ["node-22-last/bin/node"],
  "Node.js 24.0": ["node-24-first/bin/node"],
  "Node.js 26, the newest": ["node-26-last/bin/node"],
  Bun: ["@oven/bun-linux-x64/bin/bun"],
};
const DENO = ["@deno/linux-x64-glibc/deno", "run", "-A", "--node-modules-dir=manual"] as const;

/** The packages that bring them are for this kind of machine. */
const areThere = process.platform === "linux" && process.arch === "x64";
let bin = "";
let project = "";
beforeAll(() => {
  if (!areThere) return;
  bin = installedRuntimes();
  project = projectWithBelay();
}, 300_000);

interface Ran {
  readonly lines: readonly unknown[];
  readonly stderr: string;
  readonly status: number | null;
}

function run([file, ...words]: readonly [string, ...string[]], ...args: readonly string[]): Ran {
  for (const left of ["store.db", "store.db.processes"]) rmSync(join(project, left), { recursive: true, force: true });
  const { stdout, stderr, status } = spawnSync(join(bin, file), [...words, "program.mjs", ...args], {
    ...{ cwd: project, encoding: "utf8", timeout: 60_000 },
    env: { PATH: process.env.PATH, HOME: project },
  });
  const lines = stdout.split("\n").filter(Boolean);
  return { lines: lines.map((line) => JSON.parse(line) as unknown), stderr, status };
}

const completed = { kind: "completed" };
const cancelled = { kind: "cancelled", reason: { kind: "user" } };
const SEEN = ["run.accepted", "run.started", "turn.requested", "delta", "turn.settled", "run.settled"];
const PROMPTED = { seen: SEEN, outcome: completed, text: "done" };
const CHILD = { said: "up\n", stopped: "stopping", outcome: cancelled };
const STOPPED = { receipt: "stopping", outcome: cancelled };
const RESTARTED = { runs: 2, repeated: true, outcome: completed };

describe.skipIf(!areThere)("in", () => {
  test.each(Object.entries(RUNTIMES))("%s: a file, processes, a stop and a restart, and no warning", (_, words) => {
    const ran = run(words, "store.db", "processes");
    expect(ran).toEqual({ lines: [PROMPTED, CHILD, STOPPED, RESTARTED], stderr: "", status: 0 });
    expect(existsSync(join(project, "store.db"))).toBe(true);
  });

  test.each(Object.entries(RUNTIMES))("%s: without a file", (_, words) => {
    expect(run(words, ":memory:", "processes")).toEqual({ lines: [PROMPTED, CHILD, STOPPED], stderr: "", status: 0 });
  });

  test("Deno: a file, a stop and a restart", () => {
    expect(run(DENO, "store.db")).toEqual({ lines: [PROMPTED, STOPPED, RESTARTED], stderr: "", status: 0 });
  });

  test("Deno: processes are refused in one sentence, as none can be held there", () => {
    const { lines, stderr, status } = run(DENO, "store.db", "processes");
    expect([lines, status]).toEqual([[PROMPTED], 1]);
    expect(stderr).toContain("ControlError: Processes cannot be held in Deno");
  });
});
