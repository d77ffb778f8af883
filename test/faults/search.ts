// Goes through stories and faults in order, and counts. Everything the suite, its short version and the hunt for known
// mistakes have in common.
import { FAULTS, type FaultName, type Injection, inject, play, VERBS } from "./inject.ts";
import { drawPair } from "./pairs.ts";
import type { Story } from "./story.ts";

export interface Violation {
  readonly story: string;
  readonly injections: readonly Injection[];
  readonly found: string;
}

export interface Searched {
  readonly injections: number;
  readonly violations: readonly Violation[];
}

/** Told after each play. */
type Progress = (injections: number) => void;

/** Every call of every verb with every fault, and every verb failing for a while. */
export async function searchStories(
  stories: readonly Story[],
  { progress = () => {}, violationsMax = VIOLATIONS_MAX }: { progress?: Progress; violationsMax?: number } = {},
): Promise<Searched> {
  const violations: Violation[] = [];
  let injections = 0;
  const note = (story: Story, used: readonly Injection[], found: readonly string[]): void => {
    injections += 1;
    for (const one of found) violations.push({ story: story.name, injections: used, found: one });
    progress(injections);
  };
  for (const story of stories) {
    const { calls, found } = await play(story, []);
    note(story, [], found);
    for await (const one of inject(story)) {
      note(story, [one.injection], one.found);
      if (violations.length >= violationsMax) return { injections, violations };
    }
    for (const verb of VERBS.filter((one) => (calls.get(one) ?? 0) > 0)) {
      for (const fault of FAULTS) {
        const injection = { verb, at: "always", fault } as const;
        note(story, [injection], (await play(story, [injection])).found);
        if (violations.length >= violationsMax) return { injections, violations };
      }
    }
  }
  return { injections, violations };
}

/** Two faults at once, for each seed from `from` on. */
export async function searchPairs(
  stories: readonly Story[],
  { from, count, progress = () => {} }: { from: number; count: number; progress?: Progress },
): Promise<Searched> {
  const violations: Violation[] = [];
  for (let seed = from; seed < from + count && violations.length < VIOLATIONS_MAX; seed += 1) {
    const pair = await drawPair(stories, seed);
    if (pair === undefined) continue;
    const { found } = await play(pair.story, pair.injections);
    for (const one of found) violations.push({ story: pair.story.name, injections: pair.injections, found: one });
    progress(seed - from + 1);
  }
  return { injections: count, violations };
}

/** One broken promise shows in many plays; more of them say nothing new. */
const VIOLATIONS_MAX = 20;

/** How an injection is written on the command line, and read back. */
export const written = ({ verb, at, fault }: Injection): string => `${verb}:${at}:${fault}`;

export function readInjection(text: string): Injection {
  const [verb, at = "", fault] = text.split(":");
  const number = at === "always" ? at : Number(at);
  const known = VERBS.find((one) => one === verb);
  const named = FAULTS.find((one): one is FaultName => one === fault);
  if (
    known === undefined ||
    named === undefined ||
    (number !== "always" && !(Number.isInteger(number) && number > 0))
  ) {
    throw new TypeError(`A fault is written as append:3:store_full, not as ${text}.`);
  }
  return { verb: known, at: number, fault: named };
}

/** The command that plays exactly this again. */
export const replay = ({ story, injections }: Omit<Violation, "found">): string =>
  `npm run faults -- --story ${JSON.stringify(story)} ${injections.map((one) => `--fault ${written(one)}`).join(" ")}`;
