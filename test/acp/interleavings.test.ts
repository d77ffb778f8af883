// Many clients, each with a seeded random mix of prompts and stops in one chunk. Every law of the protocol holds for
// each, and every message is valid.
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from "vitest";
import { type Belay, openBelay } from "../../src/sdk/belay.ts";
import { brokenLaws } from "./laws.ts";
import { invalidMessages } from "./message-schema.ts";
import { agent, runNoise } from "./noise.ts";
import type { RawClient } from "./raw-client.ts";

const SEEDS = 100;
const SEEDS_AT_ONCE = 10;

let belay: Belay;
beforeAll(async () => {
  belay = await openBelay({ agent, store: ":memory:", directories: "any" });
});
afterAll(() => belay.close({ mode: "cancel", limitMs: 1_000 }));

describe.each([1, 2] as const)("version %d of the protocol", (version) => {
  const batches = Array.from({ length: SEEDS / SEEDS_AT_ONCE }, (_, index) => index * SEEDS_AT_ONCE);

  test.each(batches)(`seeds from %d on, ${SEEDS_AT_ONCE} at once`, { timeout: 30_000 }, async (first) => {
    const running = new Map<number, RawClient>();
    onTestFailed(() => {
      for (const [seed, { transcript }] of running) console.error(`seed ${seed}\n${transcript.shown}`);
    });
    await Promise.all(
      Array.from({ length: SEEDS_AT_ONCE }, async (_, index) => {
        const seed = first + index;
        const client = await runNoise(belay, { seed, version, begun: (one) => running.set(seed, one) });
        const { said } = client.transcript;
        const wrong = [...brokenLaws(said, version, { end: "finished" }), ...invalidMessages(said, version)];
        if (wrong.length === 0) running.delete(seed);
        expect(wrong, `seed ${seed}`).toEqual([]);
      }),
    );
  });

  test("the mix covers prompts that run, wait, are stopped and are refused, and calls with each outcome", {
    timeout: 30_000,
  }, async () => {
    const clients = await Promise.all(Array.from({ length: 20 }, (_, seed) => runNoise(belay, { seed, version })));
    const said = clients.flatMap(({ transcript }) => transcript.said.map(({ message }) => JSON.stringify(message)));
    const words =
      version === 1 ? ['"stopReason":"cancelled"', '"stopReason":"end_turn"'] : ['"code":-32800', '"messageId"'];
    for (const word of [...words, '"code":-32002', '"status":"completed"', '"status":"failed"', "$/cancel_request"]) {
      expect(said.filter((line) => line.includes(word)).length, word).toBeGreaterThan(0);
    }
  });
});
