import { describe, expect, test } from "vitest";
import { mistake } from "../mistakes/mistake.ts";
import { hunt } from "./hunt.ts";
import { MISTAKES, SMALL_CACHES, SMALL_SHELF } from "./mistakes.ts";
import { FAULTS } from "./nemesis.ts";
import { soak } from "./soak.ts";

/** A house at rest has closed everything that is closed by the server itself, after 5 s. */
const REST_MS = 20_000;

// Each of them starts a server of its own and works with it, on a machine that may be busy with other tests.
describe("a server that is soaked in work and faults", { timeout: 240_000 }, () => {
  test("K10: holds at the second rest what it held at the first", {
    meta: { id: "soak/nothing-held-after-rest" },
  }, async () => {
    const soaked = await soak({
      ...{ seed: 1, lanes: 3, restMs: REST_MS, mistakes: [SMALL_SHELF, SMALL_CACHES] },
      work: { kind: "rounds", rounds: 2, faults: Object.keys(FAULTS) },
    });
    // So little work leaves the heap as it is only roughly; `npm run soak` has the time to tell growth from chance.
    const { leaks, second, survivors, tally } = soaked;
    expect(leaks.filter(({ what }) => !(what in second.objects))).toEqual([]);
    expect({ survivors, wrong: tally.wrong }).toEqual({ survivors: [], wrong: [] });
    // It was not idle either.
    expect(soaked.runsBetween).toBeGreaterThan(25);
    expect(tally.faults).toBe(2 * Object.keys(FAULTS).length);
  });

  // All at once, for the time it takes; `npm run soak -- --mistakes` makes them one by one.
  test("K10: with every known mistake in it is found out for each of them", async () => {
    const found = await hunt(MISTAKES, 1);
    expect([...found].filter(([, by]) => by === undefined)).toEqual([]);
    expect(found.size).toBe(MISTAKES.length);
  });

  test("a mistake whose mark is missing in the source is an error, and not one that was found", async () => {
    const unmarked = mistake("marked-nowhere", "It has no mark.", (at) => at.remove());
    await expect(hunt([unmarked], 1)).rejects.toThrow("No line is marked with @fault marked-nowhere.");
  });
});
