// A program that is ended in a situation, and the next start on its store.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, expect } from "vitest";
import { verifyAtRest } from "../../src/core/read/verify.ts";
import { openBelay } from "../../src/index.ts";
import { logOf } from "../fixtures/belay.ts";
import { type End, expected, type Found, found, type Situation } from "./situations.ts";

/** A directory for stores, for as long as the tests of a file run. */
export function storesFolder(): () => string {
  const folder = mkdtempSync(join(tmpdir(), "belay-shutdown-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  return () => mkdtempSync(join(folder, "cell-"));
}

/** How the process has ended, and the runs that it had accepted. */
export async function firstLife(place: string, situation: Situation, end: End) {
  const program = join(import.meta.dirname, "program.ts");
  const child = spawn(process.execPath, [program, place, situation, end], { stdio: ["pipe", "pipe", "inherit"] });
  const exited = new Promise<number | NodeJS.Signals | null>((resolve) =>
    child.once("exit", (code, signal) => resolve(signal ?? code)),
  );
  let runs: readonly string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    const said = JSON.parse(line) as { readonly runs?: readonly string[]; readonly listeners?: number };
    if (said.runs === undefined) child.kill(end === "SIGKILL while it closes" ? "SIGKILL" : "SIGTERM");
    else {
      runs = said.runs;
      expect(said.listeners).toBe(1);
      if (end === "host exit") child.stdin.write("exit\n");
      else child.kill(end === "SIGKILL" ? "SIGKILL" : "SIGTERM");
    }
  }
  return { runs, exited: await exited };
}

export async function nextLife(place: string, runs: readonly string[]): Promise<readonly Found[]> {
  const again: string[] = [];
  const agent = ({ runId }: { readonly runId: string }): string => {
    again.push(runId);
    return "done";
  };
  const belay = await openBelay({ store: join(place, "first.db"), agent, loopWatch: "off" });
  try {
    return await Promise.all(
      runs.map(async (id) => {
        const run = await belay.run(id);
        const outcome = await run.outcome;
        const log = await logOf(belay.session(run.sessionId));
        // No promise is broken: no call was open when its run ended, and each run has one outcome.
        expect(verifyAtRest(log)).toEqual([]);
        return found(log, outcome, again.includes(id));
      }),
    );
  } finally {
    await belay.close();
  }
}

const EXITS: Readonly<Record<Exclude<End, "close()">, readonly unknown[]>> = {
  SIGTERM: ["SIGTERM"],
  // It may have closed before the second one.
  "SIGTERM twice": ["SIGTERM", 128 + 15],
  "SIGKILL while it closes": ["SIGKILL", "SIGTERM"],
  SIGKILL: ["SIGKILL"],
  "host exit": [0],
};

/** One cell of the table. */
export async function checkCell(place: string, situation: Situation, end: Exclude<End, "close()">): Promise<void> {
  const { runs, exited } = await firstLife(place, situation, end);
  expect(EXITS[end]).toContainEqual(exited);
  expect(runs.length).toBeGreaterThan(0);
  const lives = await nextLife(place, runs);
  for (const [at, life] of lives.entries()) expect(life).toMatchObject(expected(situation, end, at));
}
