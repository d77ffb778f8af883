import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { openSpawner } from "../../src/process/spawner.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { here } from "../fixtures/mechanisms-here.ts";
import { marked, markOf, SHAPES } from "./shapes.ts";

const home = mkdtempSync(join(tmpdir(), "belay-server-killed-"));
let first = (process.pid % 10_000) * 10_000 + 9_000;

afterAll(() => rmSync(home, { recursive: true, force: true }));

describe("a server that is killed", () => {
  test.each(here())(
    "G20: leaves no process once the next one has opened, held by %s",
    { timeout: 60_000, meta: { id: "G20/next-start-sweeps-trees" } },
    async (mechanism) => {
      first += SHAPES.length;
      const dir = join(home, mechanism);
      // A tier that knows a tree by its marks alone is tested only with shapes that keep them.
      const which = mechanism === "group" ? "marked" : "all";
      const args = [join(import.meta.dirname, "owner.ts"), dir, mechanism, String(first), which];
      const owner = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
      await new Promise((resolve) => owner.stdout.once("data", resolve));
      const marks = SHAPES.map((_, index) => markOf(first + index));
      expect(marked(marks).size).toBeGreaterThan(0);
      const gone = new Promise((resolve) => owner.once("exit", resolve));
      owner.kill("SIGKILL");
      await gone;

      const next = await openSpawner({ dir, workspace: dir, clock: systemClock, mechanism });
      const left = [...marked(marks).values()].flat();
      for (const pid of left) process.kill(pid, "SIGKILL");
      expect(left).toEqual([]);
      expect(next.swept.flatMap(({ escaped }) => escaped)).toEqual([]);
      expect(readdirSync(join(dir, "ledger"))).toEqual([]);
      await next.close();
    },
  );
});
