// D14: a copy that is made while the server writes, in the ways the documentation names. What was acknowledged before
// it is in it, it is whole, and a server goes on from it.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { afterAll, expect, test } from "vitest";
import type { Recorded } from "../../src/core/model/event.ts";
import { verify, verifyAtRest } from "../../src/core/read/verify.ts";
import { logOf, openTestBelay, waits } from "../fixtures/belay.ts";

const folder = mkdtempSync(join(tmpdir(), "belay-backup-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const WAYS: readonly (readonly [string, (from: string, to: string) => Promise<void>])[] = [
  [
    "the backup of SQLite",
    async (from, to) => {
      const source = new DatabaseSync(from, { readOnly: true });
      // A page at a time, so that much is written between its first page and its last.
      await backup(source, to, { rate: 1 });
      source.close();
    },
  ],
  [
    "VACUUM INTO",
    async (from, to) => {
      const source = new DatabaseSync(from, { readOnly: true });
      source.exec(`VACUUM INTO '${to}'`);
      source.close();
    },
  ],
];

const acceptedIn = (log: readonly Recorded[]): readonly string[] =>
  log.flatMap((event) => (event.type === "run.accepted" ? [event.runId] : []));

test.each(WAYS)(
  "D14: %s, while prompts are accepted and runs end",
  { timeout: 60_000, meta: { id: "store/backup-while-writing" } },
  async (way, copy) => {
    const [file, copied] = ["", "-copy"].map((end) => join(folder, `${way.length}${end}.db`)) as [string, string];
    const house = await openTestBelay({ waits }, { store: file });
    const session = await house.belay.createSession();
    const { id: live } = (await house.belay.createSession()).prompt("waits");
    await house.began("waits");
    const before: string[] = [];
    for (let count = 0; count < 20; count += 1) {
      const run = session.prompt(`before ${count}`);
      await run.outcome;
      before.push(run.id);
    }
    let writing = true;
    const writer = (async () => {
      let count = 0;
      for (; writing; count += 1) await session.prompt(`meanwhile ${count}`).outcome;
      return count;
    })();
    await copy(file, copied);
    writing = false;
    expect(await writer).toBeGreaterThan(0);
    const accepted = acceptedIn(await logOf(session));
    await house.belay.close({ mode: "cancel" });

    const next = await openTestBelay({}, { store: copied });
    const again = next.belay.session(session.id);
    const log = await logOf(again);
    expect(verify(log)).toEqual([]);
    // What is in it is what had happened until some moment. A run that was live then has been taken up since.
    const kept = acceptedIn(log);
    expect(kept).toEqual(accepted.slice(0, kept.length));
    const ended = new Set<string>(
      (await again.runs({ limit: 1000 })).filter(({ outcome }) => outcome).map(({ id }) => id),
    );
    expect(before.filter((id) => !ended.has(id))).toEqual([]);
    // What was live when it was copied is taken up, and the next prompt is run.
    expect(await (await next.belay.run(live)).outcome).toEqual({ kind: "completed" });
    expect(await again.prompt("after").outcome).toEqual({ kind: "completed" });
    expect(verifyAtRest(await logOf(again))).toEqual([]);
    await next.belay.close();
  },
);
