import { availableParallelism } from "node:os";
import { describe, expect, test } from "vitest";
import { mistake } from "../mistakes/mistake.ts";
import { FINDING_KINDS } from "./finding.ts";
import { hunt } from "./hunt.ts";
import { crashLoop } from "./loop.ts";
import { MISTAKES } from "./mistakes.ts";
import { POINTS } from "./points.ts";

const SEED = 7;
/** More than there are points: some lives end before their point, by a tool that kills its server. */
const ROUND_KILLS = Math.ceil(POINTS.length / 2) + 5;
const KILLS = 2 * ROUND_KILLS;

/** Every other one. What only a file of an earlier version passes comes first. */
const half = (which: number): readonly string[] =>
  [...POINTS]
    .sort((a, b) => Number(b.startsWith("migrate")) - Number(a.startsWith("migrate")))
    .filter((_, index) => index % 2 === which);

test("G1, G2, G14, G15, G20, G24, G25, G29: what was told before kill -9, at every point, is true after it", {
  timeout: 600_000,
  meta: { id: "crash/acknowledged-facts-survive-kill" },
}, async () => {
  const found: string[] = [];
  const result = await crashLoop({
    ...{ kills: KILLS, roundKills: ROUND_KILLS, seed: SEED, lanes: Math.min(2, availableParallelism()) },
    points: [half(0), half(1)],
    keep: "never",
    onFinding: ({ kind, message }) => found.push(`${kind}: ${message}`),
  });
  expect(found).toEqual([]);
  for (const kind of FINDING_KINDS) expect(result[kind], kind).toBe(0);
  expect(result.kills).toBe(KILLS);
  expect(result.acked).toBeGreaterThan(ROUND_KILLS);
  // Every server that was to die at a point has died there, and one tool has taken its server with it.
  expect(result.points).toEqual([...POINTS, "poison"].sort());
});

test("a run that kills its server has failed by then, although no other kill follows", {
  timeout: 120_000,
}, async () => {
  const opening = (times: number): readonly string[] => Array.from({ length: times }, () => "open:before-checkpoint");
  const found: string[] = [];
  const result = await crashLoop({
    // It is sent when six kills are left. None of the five lives behind that one gets to it.
    ...{ kills: 12, roundKills: 12, seed: SEED, lanes: 1, points: [[...opening(6), "accept:answered", ...opening(5)]] },
    keep: "never",
    onFinding: ({ kind, message }) => found.push(`${kind}: ${message}`),
  });
  expect(found).toEqual([]);
  expect(result.points).toEqual(["accept:answered", "open:before-checkpoint", "poison"]);
});

describe("a server with a known mistake is found out", () => {
  const fast = ["acknowledged-before-the-commit", "call-begun-before-its-record", "migration-in-steps"];
  test.each(MISTAKES.filter(({ name }) => fast.includes(name)))("$name", { timeout: 600_000 }, async (known) => {
    expect(await hunt(known, SEED)).toBeDefined();
  });

  test("one whose mark is missing in the source is an error, and not one that was found", async () => {
    const unmarked = mistake("marked-nowhere", "It has no mark.", (at) => at.remove());
    await expect(hunt(unmarked, SEED)).rejects.toThrow("No line is marked with @fault marked-nowhere.");
  });
});
