// The server is killed with -9 while it has trees. The kernel ends them with it, or the next start does.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { verifyAtRest } from "../../src/core/read/verify.ts";
import type { Mechanism } from "../../src/ports/spawner.ts";
import type { Belay } from "../../src/sdk/belay.ts";
import { openBelay } from "../../src/sdk/belay.ts";
import { logOf } from "../fixtures/belay.ts";
import { mark, marked, markedAtLeast } from "../fixtures/marked-process.ts";
import { here } from "../fixtures/mechanisms-here.ts";

let dir = "";
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "belay-killed-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** Starts a server, and kills it when both trees run. */
async function killed(file: string, marks: readonly [string, string], mechanism: Mechanism): Promise<void> {
  const script = join(import.meta.dirname, "doomed-server.ts");
  const server = spawn(process.execPath, [script, file, ...marks, mechanism], { stdio: ["ignore", "pipe", "inherit"] });
  await once(server.stdout, "data");
  for (const id of marks) await markedAtLeast(id, 4);
  server.kill("SIGKILL");
  await once(server, "exit");
}

/** The notes about processes that the model received, over all turns. */
const told: string[] = [];
async function restarted(file: string): Promise<Belay> {
  told.length = 0;
  return openBelay({
    store: file,
    agent: async (turn) => {
      for (const message of await turn.transcript()) if (message.role === "note") told.push(message.item.text);
      return "heard";
    },
  });
}

// In `group` a child that sheds its group, its session and its environment escapes: a documented leak with its own
// test.
for (const mechanism of here().filter((one) => one !== "group")) {
  test(`G20, G22, G25: no tree is left after kill -9 of the server, and the session gets a note: ${mechanism}`, {
    meta: { id: "G20/killed-server-leaves-no-tree" },
  }, async () => {
    const file = join(dir, "belay.db");
    const marks = [mark(), mark()] as const;
    await killed(file, marks, mechanism);
    const belay = await restarted(file);
    // The start itself has ended what was left.
    expect(marks.flatMap(marked)).toEqual([]);
    const session = belay.session("ses_doomed");
    for await (const event of session.events()) if (event.type === "run.settled") break;
    expect(await session.processes.list()).toEqual([]);
    const ended = (await logOf(session)).filter((event) => event.type === "process.settled");
    expect(ended.map(({ outcome }) => outcome.kind)).toEqual(["lost", "lost"]);
    expect(told.filter((text) => text.includes("proc_doomed.1"))).toHaveLength(1);
    expect(told.filter((text) => text.includes("proc_doomed.2"))).toHaveLength(0);
    expect(verifyAtRest(await logOf(session))).toEqual([]);
    await belay.close();
  });
}
