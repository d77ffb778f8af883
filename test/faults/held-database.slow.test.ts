// Another program that holds the database, for real: stops and kills work meanwhile, whoever looks is answered, nobody
// is told what is not true, and afterwards everything is recorded.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Turn } from "../../src/ports/agent.ts";
import { exists, type FailingServer, failingServer, startedPid } from "./failing-server.ts";

/** A command that would go on for ever, in a call. */
async function sleeps(turn: Turn): Promise<string> {
  const { kind } = await turn.call("shell", null, async ({ processes }) => (await processes.run("sleep 1000")).kind);
  return kind;
}

/** Looks until it is gone: by then nothing of it waits for the disk. */
async function gone(pid: number): Promise<void> {
  while (exists(pid)) await new Promise((resolve) => setImmediate(resolve));
}

describe("D2: another program that holds the database", { timeout: 60_000 }, () => {
  let folder = "";
  let house: FailingServer;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "belay-held-"));
    house = await failingServer(folder, { sleeps });
  });
  afterEach(async () => {
    await house.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test("G28: prompts are refused as locked, stops are carried out, and the server recovers by itself", {
    meta: { id: "G28/locked-database-stops-work" },
  }, async () => {
    const session = await house.belay.createSession();
    const run = session.prompt("sleeps");
    const pid = await startedPid(session);
    const holder = new DatabaseSync(join(folder, "belay.db"));
    holder.exec("BEGIN IMMEDIATE");
    try {
      const refused = session.prompt("refused");
      await expect(refused.accepted).rejects.toMatchObject({ code: "store_locked" });
      await expect(run.cancel()).rejects.toMatchObject({ code: "store_locked" });
      await gone(pid);
      expect(await session.runs()).toHaveLength(1);
    } finally {
      holder.exec("ROLLBACK");
      holder.close();
    }
    expect(await run.outcome).toMatchObject({ kind: "cancelled" });
    expect(await session.prompt("next").outcome).toEqual({ kind: "completed" });
    expect(await session.runs()).toHaveLength(2);
  });
});
