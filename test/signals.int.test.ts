// A program that is asked to end by a signal.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, expect, test } from "vitest";
import { openBelay } from "../src/index.ts";

const folder = mkdtempSync(join(tmpdir(), "belay-signals-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs the program and answers its lines with signals. */
async function play(
  file: string,
  manner: string,
  onLine: (line: string, send: (signal: NodeJS.Signals) => void) => void,
) {
  const child = spawn(process.execPath, [join(import.meta.dirname, "signals-child.ts"), file, manner], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = new Promise<number | NodeJS.Signals | null>((resolve) =>
    child.once("exit", (code, signal) => resolve(signal ?? code)),
  );
  for await (const line of createInterface({ input: child.stdout })) onLine(line, (signal) => child.kill(signal));
  return exited;
}

test("the first signal parks what is live and frees the file; the next life takes it up", async () => {
  const file = join(folder, "first.db");
  let runId = "";
  const ended = await play(file, "listens", (line, send) => {
    if (!line.startsWith("live ")) return;
    runId = line.slice(5);
    send("SIGTERM");
  });
  expect(ended).toBe("SIGTERM");
  const belay = await openBelay({ store: file, agent: ({ attempt }) => `attempt ${attempt}` });
  const run = await belay.run(runId);
  expect(await run.outcome).toEqual({ kind: "completed" });
  const texts = (await belay.session(run.sessionId).transcript()).map((message) =>
    "text" in message ? message.text : "",
  );
  expect(texts).toEqual(["work", "so far", "attempt 1"]);
  await belay.close();
});

test("G25: a program that handles the signal itself is not ended before its handler has finished", async () => {
  const lines: string[] = [];
  const ended = await play(join(folder, "drains.db"), "drains", (line, send) => {
    lines.push(line);
    if (line.startsWith("live ")) send("SIGTERM");
  });
  expect([ended, lines.at(-1)]).toEqual([0, "drained"]);
});

test("the second signal does not wait for an agent that does not listen", async () => {
  let signals = 0;
  const ended = await play(join(folder, "second.db"), "deaf", (line, send) => {
    if (line.startsWith("live ")) send("SIGTERM");
    if (line === "closing" && ++signals === 1) send("SIGTERM");
  });
  // Its own listener keeps the signal from killing it, so it leaves with the code that means the same.
  expect(ended).toBe(128 + 15);
});
