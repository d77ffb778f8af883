// Soaks a real server in work and faults, and looks at what it holds on to. `npm run soak -- --minutes 10`
//
//   --minutes N      by the clock (default 10); the first third, and 3,000 runs at least, are for warming up
//   --rounds N       instead: each deed so many times, twice; then also objects are counted, by class
//   --lanes N        sessions at once (default 3)
//   --seed S         the order of deeds, company and faults (default 1)
//   --mistake NAME   with a known mistake in the server: leak-listener, leak-fd, leak-timer, zombie
//   --mistakes       all of them, one after the other: each must be found
//   --json           the last line is one object
//
// Exits with 1 if anything is held that should not be, if memory is shown to grow, or if a deed went wrong.
import { conclude, optionsOf, refuse, say, wholeNumber } from "../run/suite.ts";
import { hunt } from "./hunt.ts";
import { MISTAKES, SMALL_CACHES, SMALL_SHELF } from "./mistakes.ts";
import { FAULTS } from "./nemesis.ts";
import { soak } from "./soak.ts";
import { verdictOf } from "./verdict.ts";

/** How long a house may take to come to rest: connections that nobody uses are closed after 5 s, by the server. */
const REST_MS_MAX = 45_000;

const values = optionsOf({
  minutes: { type: "string", default: "10" },
  rounds: { type: "string" },
  lanes: { type: "string", default: "3" },
  seed: { type: "string", default: "1" },
  mistake: { type: "string" },
  mistakes: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
});
const minutes = Number(values.minutes);
if (!(minutes > 0)) refuse(`--minutes takes a number above 0, not ${values.minutes}.`);
const seed = wholeNumber(values.seed, "--seed");
const lanes = wholeNumber(values.lanes, "--lanes");
const rounds = values.rounds === undefined ? undefined : wholeNumber(values.rounds, "--rounds");
const mistake = MISTAKES.find(({ name }) => name === values.mistake);
if (values.mistake !== undefined && mistake === undefined) {
  refuse(`There is no mistake ${values.mistake}. There are: ${MISTAKES.map(({ name }) => name).join(", ")}.`);
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
say(`seed ${seed}`);
if (values.mistakes) await huntAll();
else await soakOnce();

async function soakOnce(): Promise<void> {
  const soaked = await soak({
    ...{ seed, lanes, restMs: REST_MS_MAX },
    mistakes: [SMALL_SHELF, SMALL_CACHES, ...(mistake === undefined ? [] : [mistake])],
    work: rounds === undefined ? { kind: "minutes", minutes } : { kind: "rounds", rounds, faults: Object.keys(FAULTS) },
  });
  const { holds, findings, figures } = verdictOf(soaked);
  for (const finding of findings) say(`FOUND: ${finding}`);
  if (!holds) {
    const how = rounds === undefined ? `--minutes ${minutes}` : `--rounds ${rounds}`;
    const wrong = mistake === undefined ? "" : ` --mistake ${mistake.name}`;
    say(`again: npm run soak -- ${how} --lanes ${lanes} --seed ${seed}${wrong}`);
  }
  const amount = rounds === undefined ? { minutes } : { rounds };
  const named = mistake === undefined ? {} : { mistake: mistake.name };
  conclude({ suite: "soak", ...amount, ...figures, seed, ...named }, { json: values.json, holds });
}

async function huntAll(): Promise<void> {
  const missed: string[] = [];
  for (const one of MISTAKES) {
    const by = (await hunt([one], seed)).get(one.name);
    say(`${one.name}: ${by ?? "MISSED"}`);
    if (by === undefined) missed.push(one.name);
  }
  const result = { suite: "soak", mistakes: MISTAKES.length, missed, seed };
  conclude(result, { json: values.json, holds: missed.length === 0 });
}
