// node test/crash/hunt-all.ts: lets the crash loop loose on every known mistake, and says what gave each away.
import { conclude, optionsOf, say, wholeNumber } from "../run/suite.ts";
import { hunt } from "./hunt.ts";
import { MISTAKES } from "./mistakes.ts";
import { leaveIfStopped, stopOnSignals } from "./stop.ts";

const values = optionsOf({
  seed: { type: "string", default: "1" },
  only: { type: "string" },
  json: { type: "boolean", default: false },
});
const seed = wholeNumber(values.seed, "--seed");
const left = MISTAKES.filter(({ name }) => values.only === undefined || name === values.only);
const known = left.length;
const missed: string[] = [];
const stop = stopOnSignals();

async function hunter(): Promise<void> {
  for (let mistake = left.shift(); mistake !== undefined; mistake = left.shift()) {
    const by = await hunt(mistake, seed, stop);
    say(`${mistake.name}: ${by?.slice(0, 160) ?? "missed"}`);
    if (by !== undefined) continue;
    missed.push(mistake.name);
    say(`  replay: node test/crash/hunt-all.ts --only ${mistake.name} --seed ${seed}`);
  }
}

await Promise.all([hunter(), hunter()]).catch(leaveIfStopped);
const result = { suite: "crash-mistakes", known, found: known - missed.length, missed, seed };
conclude(result, { json: values.json, holds: missed.length === 0 });
