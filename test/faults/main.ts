// node test/faults/main.ts [--seed S] [--pairs N [--only-pairs]] [--mistakes] [--json]
// node test/faults/main.ts --story NAME [--fault verb:n:fault …]
//
// Every call of the store with every fault, in every story; then pairs of faults. See inject.ts. With --mistakes:
// whether the same finds every known mistake.
import { conclude, optionsOf, progress, refuse, say, wholeNumber } from "../run/suite.ts";
import { hunt } from "./hunt.ts";
import { type Injection, play } from "./inject.ts";
import { MISTAKES } from "./mistakes.ts";
import { readInjection, replay, searchPairs, searchStories, type Violation } from "./search.ts";
import { STORIES } from "./stories.ts";

const values = optionsOf({
  seed: { type: "string", default: "1" },
  pairs: { type: "string", default: "2000" },
  "only-pairs": { type: "boolean", default: false },
  story: { type: "string" },
  fault: { type: "string", multiple: true, default: [] },
  mistakes: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
});

const seed = wholeNumber(values.seed, "--seed");
const pairs = wholeNumber(values.pairs, "--pairs");
if (values.mistakes) await huntAll();
else if (values.story === undefined) await searchAll();
else await playOne(values.story, values.fault);

async function searchAll(): Promise<void> {
  say(`faults: ${STORIES.length} stories, seed ${seed}`);
  const stories = values["only-pairs"] ? [] : STORIES;
  const single = await searchStories(stories, { progress: (done) => progress(`${done} faults`) });
  const double = await searchPairs(STORIES, {
    from: seed,
    count: pairs,
    progress: (done) => progress(`${done} pairs`),
  });
  const violations = [...single.violations, ...double.violations];
  for (const violation of violations) tell(violation);
  conclude(
    {
      suite: "faults",
      seed,
      stories: STORIES.length,
      injections: single.injections + double.injections,
      violations: violations.length,
    },
    { json: values.json, holds: violations.length === 0 },
  );
}

async function playOne(name: string, faults: readonly string[]): Promise<void> {
  const story = STORIES.find((one) => one.name === name);
  if (story === undefined) refuse(`There is no story called ${JSON.stringify(name)}.`);
  const injections = faults.map(injectionOf);
  const { found } = await play(story, injections);
  for (const one of found) tell({ story: name, injections, found: one });
  conclude(
    { suite: "faults", seed, stories: 1, injections: injections.length, violations: found.length },
    { json: values.json, holds: found.length === 0 },
  );
}

async function huntAll(): Promise<void> {
  const missed: string[] = [];
  for (const mistake of MISTAKES) {
    const by = await hunt([mistake]);
    say(`${by === undefined ? "✗" : "✓"} ${mistake.name}: ${by ?? "was not found"}`);
    if (by === undefined) missed.push(mistake.name);
  }
  const found = MISTAKES.length - missed.length;
  conclude(
    { suite: "fault-mistakes", known: MISTAKES.length, found, missed },
    { json: values.json, holds: missed.length === 0 },
  );
}

function tell(violation: Violation): void {
  say(`✗ ${violation.story}: ${violation.found}\n  again: ${replay(violation)}`);
}

function injectionOf(text: string): Injection {
  try {
    return readInjection(text);
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error));
  }
}
