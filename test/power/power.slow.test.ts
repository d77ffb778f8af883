// Power loss, in short; `npm run power` is the long one.
import { describe, expect, test } from "vitest";
import { mistake } from "../mistakes/mistake.ts";
import { named } from "../mistakes/named.ts";
import { countOf, sendCrew } from "./crew.ts";
import { MISTAKES, SYNC_NORMAL } from "./mistakes.ts";

/** One of each kind; `node test/power/main.ts --mistakes` hunts them all. */
const SAMPLE = ["commit-not-heard", "migration-in-pieces", "database-not-synced"];

describe("D7: power loss", { timeout: 240_000 }, () => {
  test("G1: takes nothing that was answered, and leaves no half of anything, at whatever moment it comes", {
    meta: { id: "G1/power-loss-loses-nothing" },
  }, async () => {
    const seen = await sendCrew({ seed: 1, cuts: 300 });
    expect(seen.found).toEqual([]);
    expect(seen.cuts).toBe(300);
    expect(seen.acked).toBeGreaterThan(500);
    const moments = [...seen.moments.keys()].join("\n");
    for (const doing of ["create", "open", "append", "close"]) expect(moments).toContain(`${doing}: `);
    for (const what of ["write wal", "write database", "sync wal"]) expect(moments).toContain(what);
  });

  test("the same seed has the same end", async () => {
    const [one, other] = await Promise.all([1, 1].map((seed) => sendCrew({ seed, cuts: 10, world: 3 })));
    expect([...(one?.moments ?? [])]).toEqual([...(other?.moments ?? [])]);
    expect(one?.acked).toBe(other?.acked);
  });

  test("is found to take answers back if commits are not synced", {
    meta: { id: "power/unsynced-commits-found" },
  }, async () => {
    const seen = await sendCrew({ seed: 1, cuts: 60, mistakes: [SYNC_NORMAL] });
    expect(countOf(seen, "lost")).toBeGreaterThan(0);
  });

  test("D8: is found to take answers back if the disk lies about its syncs", {
    meta: { id: "power/lying-disk-found" },
  }, async () => {
    const seen = await sendCrew({ seed: 1, cuts: 60, lies: ["all"] });
    expect(seen.found.length).toBeGreaterThan(0);
  });

  test.each(SAMPLE)("%s is found", async (name) => {
    const known = named(MISTAKES, name);
    const seen = await sendCrew({ seed: 1, cuts: 400, mistakes: [known], lies: known.lies, foundMax: 1 });
    expect(seen.found.length).toBeGreaterThan(0);
  });

  test("a mistake whose mark is missing in the source is an error, and not one that was found", async () => {
    const unmarked = mistake("marked-nowhere", "It has no mark.", (at) => at.remove());
    await expect(sendCrew({ seed: 1, cuts: 10, mistakes: [unmarked] })).rejects.toThrow(
      "No line is marked with @fault marked-nowhere.",
    );
  });
});
