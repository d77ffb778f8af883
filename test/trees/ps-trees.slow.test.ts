// The tier for macOS, tested on Linux: process groups and `ps`, without /proc.
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Child } from "../../src/ports/spawner.ts";
import { type OpenSpawner, openSpawner } from "../../src/process/spawner.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { psHere } from "./ps-here.ts";
import { ESCAPES_PS, marked, markOf, SHAPES, survivorsOf } from "./shapes.ts";

let marks = (process.pid % 10_000) * 10_000 + 7_000;
const home = mkdtempSync(join(tmpdir(), "belay-ps-trees-"));
const open = (dir: string): Promise<OpenSpawner> =>
  openSpawner({ dir, workspace: home, clock: systemClock, processTable: psHere() });

afterAll(() => rmSync(home, { recursive: true, force: true }));

async function up(child: Child): Promise<void> {
  for await (const page of child.output.follow()) if (page.text.includes("up")) return;
}

describe("trees listed with ps", () => {
  let spawner: OpenSpawner;
  let mark: string;

  beforeAll(async () => {
    spawner = await open(join(home, "stop"));
  });

  afterAll(() => spawner.close());

  afterEach(() => {
    for (const pid of survivorsOf(mark)) process.kill(pid, "SIGKILL");
  });

  async function stopped(shape: (typeof SHAPES)[number]) {
    marks += 1;
    mark = markOf(marks);
    const id = `proc_ps.${marks}` as const;
    const child = await spawner.spawn({ id, sessionId: "ses_ps", command: shape.command(mark) });
    await up(child);
    if (shape.end !== "alone") child.stop(shape.end === "forced" ? 0 : undefined);
    return { end: await child.ended, output: child.output.excerpt().head, survivors: survivorsOf(mark).length };
  }

  test("are held by the last tier, and no other", () => {
    expect([spawner.tier, spawner.mechanism]).toEqual(["group", "group"]);
  });

  test.each(SHAPES.filter(({ name }) => ESCAPES_PS[name] === undefined))(
    "G19: no process survives: $name",
    async (shape) => {
      const { end, output, survivors } = await stopped(shape);
      expect(survivors).toBe(0);
      expect(end.escaped).toEqual([]);
      for (const words of shape.says ?? []) expect(output).toContain(words);
    },
  );

  // Where survivors are documented there must be some: otherwise the documentation is wrong.
  test.each(SHAPES.filter(({ name }) => ESCAPES_PS[name] === "unmarked"))(
    "a process that has shed its environment escapes, and is reported: $name",
    async (shape) => {
      const { end, survivors } = await stopped(shape);
      expect(survivors).toBeGreaterThan(0);
      expect(end.escaped.length).toBeGreaterThan(0);
    },
  );

  test.each(SHAPES.filter(({ name }) => ESCAPES_PS[name] === "unnoticed"))(
    "a process that has also closed all files escapes without a report: $name",
    async (shape) => {
      const { end, survivors } = await stopped(shape);
      expect(survivors).toBeGreaterThan(0);
      expect(end.escaped).toEqual([]);
    },
  );

  test("processes that a command left behind are ended with it, and counted", async () => {
    const child = await spawner.spawn({ id: "proc_ps.1", sessionId: "ses_ps", command: "sleep 8000301 & exit 3" });
    expect(await child.ended).toMatchObject({ code: 3, left: 1, escaped: [], stopped: false });
  });

  test("a terminal is refused, because it is untested", async () => {
    const terminal = { columns: 80, rows: 24 };
    const asked = spawner.spawn({ id: "proc_ps.2", sessionId: "ses_ps", command: "true", terminal });
    await expect(asked).rejects.toMatchObject({ code: "not_started" });
  });
});

describe("a server that is killed", () => {
  async function killedServer(dir: string, first: number): Promise<readonly string[]> {
    const args = [join(import.meta.dirname, "owner.ts"), dir, "group", String(first), "ps"];
    const owner = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    await new Promise((resolve) => owner.stdout.once("data", resolve));
    const all = SHAPES.map((_, index) => markOf(first + index));
    expect(marked(all).size).toBeGreaterThan(0);
    const gone = new Promise((resolve) => owner.once("exit", resolve));
    owner.kill("SIGKILL");
    await gone;
    return all;
  }

  test("G20: leaves no process once the next one has opened, listed with ps", { timeout: 60_000 }, async () => {
    const dir = join(home, "killed");
    const all = await killedServer(dir, marks + 1_000);
    const next = await open(dir);
    const left = [...marked(all).values()].flat();
    for (const pid of left) process.kill(pid, "SIGKILL");
    expect(left).toEqual([]);
    expect(next.swept.length).toBeGreaterThan(0);
    expect(next.swept.flatMap(({ escaped }) => escaped)).toEqual([]);
    expect(readdirSync(join(dir, "ledger"))).toEqual([]);
    await next.close();
  });

  test("G20: leaves no process even if no other opens: its watchdog ends them", { timeout: 60_000 }, async () => {
    const all = await killedServer(join(home, "watched"), marks + 2_000);
    while (marked(all).size > 0) await new Promise((resolve) => setImmediate(resolve));
    expect(marked(all).size).toBe(0);
  });
});
