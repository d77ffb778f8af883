// A program that is ended in every situation and in every way, and the next start: what the log says is true, nothing
// that was accepted is missing, and what can continue continues.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, describe, expect, test } from "vitest";
import { openBelay } from "../../src/index.ts";
import { logOf } from "../fixtures/belay.ts";
import { ENDS, type End, expected, found, SITUATIONS, type Situation } from "./situations.ts";

const folder = mkdtempSync(join(tmpdir(), "belay-shutdown-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** How the process has ended, and the runs that it had accepted. */
async function firstLife(place: string, situation: Situation, end: End) {
  const program = join(import.meta.dirname, "program.ts");
  const child = spawn(process.execPath, [program, place, situation, end], { stdio: ["pipe", "pipe", "inherit"] });
  const exited = new Promise<number | NodeJS.Signals | null>((resolve) =>
    child.once("exit", (code, signal) => resolve(signal ?? code)),
  );
  let runs: readonly string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    const said = JSON.parse(line) as { readonly runs?: readonly string[]; readonly listeners?: number };
    if (said.runs === undefined) child.kill("SIGTERM");
    else {
      runs = said.runs;
      expect(said.listeners).toBe(1);
      if (end === "host exit") child.stdin.write("exit\n");
      else child.kill(end === "SIGKILL" ? "SIGKILL" : "SIGTERM");
    }
  }
  return { runs, exited: await exited };
}

async function nextLife(place: string, runs: readonly string[]) {
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
        return found(await logOf(belay.session(run.sessionId)), outcome, again.includes(id));
      }),
    );
  } finally {
    await belay.close();
  }
}

const exits: Readonly<Record<Exclude<End, "close()">, readonly unknown[]>> = {
  SIGTERM: ["SIGTERM"],
  "SIGTERM twice": ["SIGTERM", 128 + 15],
  SIGKILL: ["SIGKILL"],
  "host exit": [0],
};

describe.each(ENDS.filter((end) => end !== "close()"))(
  "G25: after %s and the next start,",
  { timeout: 60_000 },
  (end) => {
    test.concurrent.each(SITUATIONS)("%s", async (situation) => {
      const place = mkdtempSync(join(folder, "cell-"));
      const { runs, exited } = await firstLife(place, situation, end);
      expect(exits[end]).toContainEqual(exited);
      expect(runs.length).toBeGreaterThan(0);
      for (const run of await nextLife(place, runs)) expect(run).toMatchObject(expected(situation, end));
    });
  },
);
