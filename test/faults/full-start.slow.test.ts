// A start on a disk that is nearly full: whatever has no room first, the one who starts it hears that it is the disk,
// and not that Belay is broken or that somebody should send a request again.
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ControlError } from "../../src/core/errors.ts";
import { openTokens } from "../../src/http/auth/tokens.ts";
import { openSqliteStore } from "../../src/store/sqlite/sqlite-store.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { SKIPPED, type SmallDisk, smallDisk } from "./small-disk.ts";

const BLOCK = 4_096;

/** What a start needs at most; the loop below says so if that is wrong. */
const ENOUGH = 100 * BLOCK;

describe.skipIf(SKIPPED !== "")(`D1: a start on a disk that is nearly full${SKIPPED}`, { timeout: 60_000 }, () => {
  let disk: SmallDisk;
  beforeEach(() => {
    disk = smallDisk(2);
  });
  afterEach(() => disk.remove());

  /** Tries it with no room, then with a little more each time, until it succeeds. Answers what it has said. */
  async function refusals(step: number, start: (dir: string) => Promise<void>): Promise<readonly unknown[]> {
    const said: unknown[] = [];
    for (let bytes = 0; bytes < ENOUGH; bytes += step) {
      disk.makeRoom();
      const dir = mkdtempSync(join(disk.folder, "home-"));
      disk.leave(bytes);
      const refusal = await start(dir).catch((error: unknown) => error);
      if (refusal === undefined) return said;
      said.push(refusal instanceof ControlError ? `${refusal.code}: ${refusal.message.replace(dir, "")}` : refusal);
      rmSync(dir, { recursive: true });
    }
    return expect.fail("a start never has enough room");
  }

  test("says that the disk is full, for the tokens", async () => {
    const said = await refusals(BLOCK, async (dir) => {
      openTokens({ dir, clock: systemClock, onTrouble: () => {} }).ensureLocal();
    });
    expect(said.length).toBeGreaterThan(0);
    expect(new Set(said)).toEqual(new Set(["store_full: There is no space left for /tokens.json."]));
  });

  test("says that the disk is full, for the store, also where SQLite speaks of an I/O error", {
    meta: { id: "G28/full-disk-at-start" },
  }, async () => {
    const said = await refusals(3 * BLOCK, async (dir) => {
      const store = await openSqliteStore({ file: join(dir, "belay.db") });
      await store.close();
    });
    expect(said.length).toBeGreaterThan(0);
    expect(new Set(said)).toEqual(new Set(["store_full: There is no space left for /belay.db."]));
  });
});
