// Code that spins on promises of its own: nothing in its thread can stop it or even report it.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, expect, test } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "belay-watch-"));
const started: ReturnType<typeof spawn>[] = [];
afterAll(() => {
  for (const child of started) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

test.each(["text", "json"])("G12: code that blocks the event loop is named, as %s and in a notice", async (form) => {
  const flag = join(folder, form);
  const child = spawn(process.execPath, [join(import.meta.dirname, "loop-watch-child.ts"), flag, form], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  started.push(child);
  const said = createInterface(child.stdout)[Symbol.asyncIterator]();
  const complained = createInterface(child.stderr)[Symbol.asyncIterator]();
  const { sessionId, runId } = JSON.parse((await said.next()).value ?? "");
  const line: string = (await complained.next()).value ?? "";
  const named = `spin of ${runId} in ${sessionId}`;
  const text = `The event loop has not turned for 1000 ms, so nothing can be stopped: ${named}`;
  if (form === "json") expect(JSON.parse(line)).toEqual({ level: 50, time: expect.any(Number), msg: text });
  else expect(line).toBe(`belay: ${text}`);
  writeFileSync(flag, "");
  const { notice, blocked, summary } = JSON.parse((await said.next()).value ?? "");
  expect(notice).toEqual({ type: "blocked", works: [{ sessionId, runId, work: "spin" }], ms: expect.any(Number) });
  expect(notice.ms).toBeGreaterThanOrEqual(1_000);
  expect(blocked).toEqual({ work: "spin", ms: notice.ms, at: expect.any(Number) });
  expect(summary).toContain(`${runId} is running`);
});
