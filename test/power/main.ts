// Simulated power loss: the real store on the real SQLite, on a disk that forgets what was not synced.
//
//   node test/power/main.ts --cuts 2000 --seed 1          many cuts; 0 lost of some, 0 torn, or it fails
//   node test/power/main.ts --sync normal                 the store with a commit that is not synced: must fail
//   node test/power/main.ts --disk lying                  a disk that syncs nothing: must fail
//   node test/power/main.ts --mistakes                    known mistakes: each must be found
//   node test/power/main.ts --seed 1 --world 17           one world again
import { conclude, optionsOf, progress, refuse, say, wholeNumber } from "../run/suite.ts";
import { type CrewOptions, countOf, type Found, type Seen, sendCrew } from "./crew.ts";
import { MISTAKES, SYNC_NORMAL } from "./mistakes.ts";

const values = optionsOf({
  cuts: { type: "string", default: "2000" },
  seed: { type: "string", default: "1" },
  sync: { type: "string", default: "full" },
  disk: { type: "string", default: "honest" },
  world: { type: "string" },
  mistakes: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
});

/** Worlds with findings that are shown one by one. */
const SHOWN_MAX = 10;
/** Cuts before a mistake counts as missed. */
const MISTAKE_CUTS_MAX = 4_000;
const MESSAGE_MAX = 400;
let shown = 0;

const seed = wholeNumber(values.seed, "--seed");
const sync = oneOf(values.sync, "--sync", ["full", "normal"]);
const disk = oneOf(values.disk, "--disk", ["honest", "lying"]);

if (values.mistakes) await hunt();
else await cutPower();

async function cutPower(): Promise<void> {
  const cuts = wholeNumber(values.cuts, "--cuts");
  if (cuts === 0) refuse("--cuts takes a whole number from 1 on, not 0: without a cut nothing is shown.");
  say(`power: ${cuts} cuts, seed ${seed}, sync ${sync}, an ${disk === "lying" ? "untruthful" : "honest"} disk`);
  const options: CrewOptions = {
    seed,
    cuts,
    mistakes: sync === "normal" ? [SYNC_NORMAL] : [],
    lies: disk === "lying" ? ["all"] : [],
    world: values.world === undefined ? undefined : wholeNumber(values.world, "--world"),
    found: show,
    progress: ({ cuts: done, found }) =>
      progress(`power: ${done} of ${cuts} cuts, ${found.length} worlds with findings`),
  };
  const began = performance.now();
  const seen = await sendCrew(options);
  showMoments(seen);
  const seconds = (performance.now() - began) / 1_000;
  const counts = { lost: countOf(seen, "lost"), torn: countOf(seen, "torn") };
  const more = { corrupt: countOf(seen, "corrupt"), wrong: countOf(seen, "wrong") };
  const result = {
    ...{ suite: "power", cuts: seen.cuts, acked: seen.acked, ...counts, ...more },
    ...{ distinct: seen.distinct.size, moments: seen.moments.size, seed, sync, disk },
    ...{ worldsWithFindings: seen.found.length, cutsPerSecond: Math.round(seen.cuts / seconds) },
  };
  const enough = values.world !== undefined || seen.cuts >= cuts;
  if (seen.acked === 0) say("Nothing was acknowledged, so nothing could be lost: this shows nothing. Use more --cuts.");
  conclude(result, { json: values.json, holds: seen.found.length === 0 && enough && seen.acked > 0 });
}

/** As soon as it is found: a long run need not be waited for to look into it. */
function show({ world, findings }: Found): void {
  shown += 1;
  if (shown > SHOWN_MAX) return;
  for (const { kind, message } of findings) say(`  ${kind}: ${message.slice(0, MESSAGE_MAX)}`);
  const how = `${sync === "full" ? "" : ` --sync ${sync}`}${disk === "honest" ? "" : ` --disk ${disk}`}`;
  say(`  again: npm run power -- --seed ${seed} --world ${world}${how}`);
}

function showMoments(seen: Seen): void {
  const moments = [...seen.moments].sort(([, a], [, b]) => b - a);
  say(`power: the power went at ${moments.length} kinds of moments`);
  for (const [moment, times] of moments) say(`  ${String(times).padStart(6)}  ${moment}`);
}

async function hunt(): Promise<void> {
  const missed: string[] = [];
  for (const mistake of MISTAKES) {
    const { name, lies } = mistake;
    const seen = await sendCrew({ seed, cuts: MISTAKE_CUTS_MAX, mistakes: [mistake], lies, foundMax: 1 });
    const first = seen.found[0]?.findings[0];
    if (first === undefined) missed.push(name);
    const by = first === undefined ? "MISSED" : `${first.kind}: ${first.message.slice(0, 100)}`;
    say(`power: ${name} after ${seen.cuts} cuts: ${by}`);
  }
  const result = { suite: "power", mistakes: MISTAKES.length, missed, seed };
  conclude(result, { json: values.json, holds: missed.length === 0 });
}

function oneOf<T extends string>(given: string, name: string, known: readonly T[]): T {
  const found = known.find((one) => one === given);
  if (found === undefined) refuse(`${name} takes ${known.join(" or ")}, not ${given}.`);
  return found;
}
