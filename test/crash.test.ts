// A server that is killed with -9, again and again, on a real file: what was told stays true.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, expect, test } from "vitest";
import type { Recorded } from "../src/core/event.ts";
import { verify } from "../src/core/verify.ts";
import { type Belay, openBelay } from "../src/index.ts";

const folder = mkdtempSync(join(tmpdir(), "belay-crash-"));
afterAll(() => rmSync(folder, { recursive: true }));
const file = join(folder, "crash.db");
const effects = join(folder, "effects");

interface Told {
  readonly accepted: Map<string, string>;
  readonly outcomes: Map<string, string>;
  readonly cancelled: Set<string>;
}

/** Lives until it has said `lines` lines, then is killed without a warning. */
async function liveAndDie(told: Told, lines: number): Promise<void> {
  const child: ChildProcess = spawn(process.execPath, [join(import.meta.dirname, "crash-child.ts"), file, effects], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  let heard = 0;
  if (child.stdout === null) throw new Error("no stdout");
  for await (const line of createInterface({ input: child.stdout })) {
    note(told, JSON.parse(line));
    heard += 1;
    if (heard === lines) child.kill("SIGKILL");
  }
  await exited;
}

function note(told: Told, line: Record<string, string>): void {
  if (line.accepted !== undefined) told.accepted.set(line.accepted, line.session ?? "");
  if (line.outcome !== undefined) told.outcomes.set(line.run ?? "", line.outcome);
  if (line.cancelled !== undefined) told.cancelled.add(line.cancelled);
}

async function settleAll(belay: Belay, told: Told): Promise<void> {
  for (const session of new Set(told.accepted.values())) {
    for (const row of await belay.session(session).runs()) {
      if (row.outcome === undefined) await (await belay.run(row.id)).outcome;
    }
  }
}

test("G1, G14, G24, G25: what was told before kill -9 is true after it", { timeout: 120_000 }, async () => {
  const told: Told = { accepted: new Map(), outcomes: new Map(), cancelled: new Set() };
  // The moment of death moves through accepting, streaming, calling and cancelling, and through recovery itself.
  for (const lines of [2, 4, 6, 9, 13, 5, 17]) await liveAndDie(told, lines);
  expect(told.accepted.size).toBeGreaterThan(5);

  const belay = await openBelay({ store: file, agent: () => "taken up" });
  await settleAll(belay, told);
  const executed = readFileSync(effects, "utf8").trim().split("\n");
  expect(new Set(executed).size).toBe(executed.length);
  for (const [runId, sessionId] of told.accepted) {
    const rows = await belay.session(sessionId).runs({ limit: 1000 });
    const row = rows.find((one) => one.id === runId);
    expect(row?.outcome, `${runId} was acknowledged`).toBeDefined();
    const before = told.outcomes.get(runId);
    if (before !== undefined) expect(row?.outcome?.kind).toBe(before);
    if (told.cancelled.has(runId)) expect(row?.outcome?.kind).toBe("cancelled");
  }
  for (const { id, head } of await belay.sessions({ limit: 1000 })) {
    const events: Recorded[] = [];
    for await (const event of belay.session(id).events()) {
      if ("seq" in event) events.push(event);
      if (events.length === head) break;
    }
    expect(verify(events)).toEqual([]);
  }
  await belay.close();
  expect(existsSync(file)).toBe(true);
});
