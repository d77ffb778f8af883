// E5: a server that dies of its memory. What was accepted is there, and what killed it three times is not begun again.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, expect, test } from "vitest";
import { verifyAtRest } from "../../src/core/read/verify.ts";
import { openBelay } from "../../src/sdk/belay.ts";
import { logOf } from "../fixtures/belay.ts";

const folder = mkdtempSync(join(tmpdir(), "belay-hungry-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const file = join(folder, "hungry.db");

/** Enough to open a store, and soon used up. */
const HEAP_MB = 48;

interface Life {
  readonly lines: readonly Readonly<Record<string, unknown>>[];
  readonly end: number | NodeJS.Signals | null;
}

async function live(...words: readonly string[]): Promise<Life> {
  const child = spawn(
    process.execPath,
    [`--max-old-space-size=${HEAP_MB}`, join(import.meta.dirname, "hungry-child.ts"), file, ...words],
    { stdio: ["ignore", "pipe", "ignore"], cwd: folder },
  );
  const ended = new Promise<Life["end"]>((resolve) => child.once("exit", (code, signal) => resolve(signal ?? code)));
  const lines: Record<string, unknown>[] = [];
  for await (const line of createInterface({ input: child.stdout })) lines.push(JSON.parse(line));
  return { lines, end: await ended };
}

test("G1, G25: a run whose tool takes all memory fails after three lives, and the one behind it is run", {
  timeout: 120_000,
  meta: { id: "G25/out-of-memory-crash-loop" },
}, async () => {
  const first = await live();
  // Not an exit of its own: V8 gives up, and the system is told.
  expect(first.end).toSatisfy((end) => end === "SIGABRT" || end === "SIGTRAP" || end === "SIGILL" || end === 134);
  const told = Object.assign({}, ...first.lines) as Readonly<Record<"session" | "run" | "behind", string>>;
  expect(told.run).toMatch(/^run_/);
  expect((await live(told.session)).lines).toEqual([{ begins: 2 }]);
  expect((await live(told.session)).lines).toEqual([{ begins: 3 }]);
  // The fourth life does not begin it, and lives.
  const belay = await openBelay({ store: file, agent: () => "done" });
  expect(await (await belay.run(told.run)).outcome).toMatchObject({ kind: "failed", code: "crash_loop" });
  expect(await (await belay.run(told.behind)).outcome).toEqual({ kind: "completed" });
  const log = await logOf(belay.session(told.session));
  expect(verifyAtRest(log)).toEqual([]);
  // Each of its calls was lost, and said to be.
  const ends = log.flatMap((event) => (event.type === "call.settled" ? [event.outcome.kind] : []));
  expect(ends).toEqual(["lost", "lost", "lost"]);
  await belay.close();
});
