// Kills a real server with -9, again and again, and holds what its clients were told against its log.
// `npm run crash -- --kills 300`
//
//   --kills N     deaths altogether (default 100)
//   --seed S      decides what clients ask and where servers die (default 1)
//   --lanes L     servers at once (default 2)
//   --point NAME  every life is to end at this point
//   --round R     begins with this round of the seed: the replay of a finding
//   --json        the last line is one object
//
// Exits with 1 if anything does not hold, or if nothing was acknowledged that could have been lost. What is found is
// kept in a folder that is named.
import { conclude, optionsOf, progress, refuse, say, wholeNumber } from "../run/suite.ts";
import { crashLoop } from "./loop.ts";
import { POINTS } from "./points.ts";
import { leaveIfStopped, stopOnSignals } from "./stop.ts";

const values = optionsOf({
  kills: { type: "string", default: "100" },
  seed: { type: "string", default: "1" },
  lanes: { type: "string", default: "2" },
  point: { type: "string" },
  round: { type: "string" },
  json: { type: "boolean", default: false },
});
const kills = wholeNumber(values.kills, "--kills");
if (kills === 0) refuse("--kills takes a whole number from 1 on, not 0: without a kill nothing is shown.");
const seed = wholeNumber(values.seed, "--seed");
const round = values.round === undefined ? undefined : wholeNumber(values.round, "--round");
if (values.point !== undefined && !POINTS.includes(values.point)) {
  refuse(`There is no point ${values.point}. There are: ${POINTS.join(", ")}.`);
}

say(`crash loop: ${kills} kills, seed ${seed}`);
const began = performance.now();
const result = await crashLoop({
  ...{ kills, seed, round, lanes: wholeNumber(values.lanes, "--lanes"), stop: stopOnSignals() },
  points: values.point === undefined ? undefined : [[values.point]],
  onKill: (count) => progress(`${count} of ${kills} kills`),
  onFinding: ({ kind, message }, { number, kills: died }, kept) => {
    say(`${kind}: ${message}`);
    say(`  round ${number} of seed ${seed}, kept in ${kept}`);
    const point = values.point === undefined ? "" : ` --point ${values.point}`;
    say(`  replay: npm run crash -- --seed ${seed} --round ${number} --kills ${died} --lanes 1${point}`);
  },
}).catch(leaveIfStopped);
const seconds = (performance.now() - began) / 1000;
const { kills: died, acked, lost, withoutOutcome, twoOutcomes, repeatedCalls, stuck, ...rest } = result;
const missed = POINTS.filter((point) => !result.points.includes(point));
if (missed.length > 0) say(`points that no server died at: ${missed.join(", ")}`);
if (acked === 0) say("Nothing was acknowledged, so nothing could be lost: this shows nothing. Use more --kills.");
conclude(
  {
    ...{ suite: "crash", kills: died, acked, lost, withoutOutcome, twoOutcomes, repeatedCalls, stuck, seed },
    ...{ ...rest, points: result.points.length, perSecond: Math.round((died / seconds) * 100) / 100 },
  },
  { json: values.json, holds: result.violations === 0 && died === kills && acked > 0 },
);
