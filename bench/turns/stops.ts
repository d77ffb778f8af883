// From a cancel until the provider sees its socket closed: over real sockets, at every place where a run can wait for a
// model, with each of the provider packages.
//
//   npx node bench/turns/stops.ts
import { modelAgent } from "../../src/agent/index.ts";
import { openBelay } from "../../src/sdk/belay.ts";
import { MODEL_NAMES, modelsAt } from "../../test/fixtures/provider/models.ts";
import type { Script } from "../../test/fixtures/provider/script.ts";
import { startProvider } from "../../test/fixtures/provider/server.ts";
import { ascending, percentile, round } from "../report.ts";

const ROUNDS = 12;

const PLACES: readonly Script[] = [
  [{ hold: "here" }],
  [{ headers: true }, { hold: "here" }],
  [{ begin: true }, { hold: "here" }],
  [{ reasoning: "hm" }, { hold: "here" }],
  [{ text: "So far" }, { hold: "here" }],
  [{ call: { name: "read", input: { path: "a" } }, holdInside: "here" }],
  [{ text: "Wait" }, { hold: "here" }, { silence: true }],
];

async function stop(script: Script, name: (typeof MODEL_NAMES)[number]): Promise<number> {
  await using server = await startProvider([script]);
  const belay = await openBelay({ store: ":memory:", agent: modelAgent({ model: modelsAt(server.baseURL)[name] }) });
  try {
    const run = belay.prompt("go");
    const request = await server.request(0);
    await server.reached("here");
    const from = performance.now();
    void run.cancel();
    const closedAt = await request.closed;
    const outcome = await run.outcome;
    if (outcome.kind !== "cancelled") throw new Error(`The run ended as ${outcome.kind}.`);
    return closedAt - from;
  } finally {
    await belay.close({ mode: "cancel" });
  }
}

const tookMs: number[] = [];
for (let count = 0; count <= ROUNDS; count += 1) {
  for (const script of PLACES) {
    for (const name of MODEL_NAMES) {
      const ms = await stop(script, name);
      // The first round is the compiler's.
      if (count > 0) tookMs.push(ms);
    }
  }
}
const sorted = ascending(tookMs);
console.log(
  JSON.stringify({
    cancelToSocketClosedP50Ms: round(percentile(sorted, 0.5), 3),
    cancelToSocketClosedP99Ms: round(percentile(sorted, 0.99), 3),
    cancelToSocketClosedMaxMs: round(sorted.at(-1) ?? Number.NaN, 3),
    socketStops: sorted.length,
  }),
);
// The provider packages keep their idle sockets open.
process.exit(0);
