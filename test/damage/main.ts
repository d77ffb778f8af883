// Damaged files: whatever is done to one, it is read as it was written, or refused with a code and advice.
//
//   node test/damage/main.ts --rounds 1000 --seed 1
import { conclude, optionsOf, progress, say, wholeNumber } from "../run/suite.ts";
import { damageRounds } from "./rounds.ts";

const values = optionsOf({
  rounds: { type: "string", default: "1000" },
  seed: { type: "string", default: "1" },
  json: { type: "boolean", default: false },
});
const rounds = wholeNumber(values.rounds, "--rounds");
const seed = wholeNumber(values.seed, "--seed");
say(`damage: ${rounds} rounds, seed ${seed}`);
const counts = { whole: 0, refused: 0, silent: 0, broken: 0 };
let done = 0;
for (const { seed: at, harm, verdict } of damageRounds(seed, rounds)) {
  counts[verdict.kind] += 1;
  done += 1;
  progress(`damage: ${done} of ${rounds} rounds`);
  if (verdict.kind === "whole" || verdict.kind === "refused") continue;
  say(`  ${verdict.kind} (${harm}, ${at}): ${verdict.message.slice(0, 300)}`);
  say(`  again: npm run damage -- --seed ${seed} --rounds ${done}`);
}
const holds = counts.silent === 0 && counts.broken === 0;
conclude({ suite: "damage", rounds: done, ...counts, seed }, { json: values.json, holds });
