// Two faults in one play, drawn from a seed: the second while the house still has the first to digest.
import { FAULTS, type Injection, play, VERBS } from "./inject.ts";
import type { Story } from "./story.ts";

export interface Pair {
  readonly story: Story;
  readonly injections: readonly Injection[];
}

/** Numbers from 0 to 1 that depend on nothing but the seed. */
export function chance(seed: number): () => number {
  let state = (seed ^ 0x9e3779b9) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The pair of a seed. A first play without faults tells how often each verb is called. */
export async function drawPair(stories: readonly Story[], seed: number): Promise<Pair | undefined> {
  const draw = chance(seed);
  const pick = <T>(list: readonly T[]): T | undefined => list[Math.floor(draw() * list.length)];
  const story = pick(stories);
  if (story === undefined) return undefined;
  const { calls } = await known(story);
  const places = VERBS.flatMap((verb) => Array.from({ length: (calls.get(verb) ?? 0) + 2 }, (_, at) => ({ verb, at })));
  const one = (): Injection | undefined => {
    const place = pick(places.filter(({ verb }) => (calls.get(verb) ?? 0) > 0));
    const fault = pick(FAULTS);
    if (place === undefined || fault === undefined) return undefined;
    return { verb: place.verb, at: place.at + 1, fault };
  };
  const [first, second] = [one(), one()];
  if (first === undefined || second === undefined) return undefined;
  if (first.verb === second.verb && first.at === second.at) return { story, injections: [first] };
  return { story, injections: [first, second] };
}

const PLAYED = new Map<Story, ReturnType<typeof play>>();

function known(story: Story): ReturnType<typeof play> {
  const played = PLAYED.get(story) ?? play(story, []);
  PLAYED.set(story, played);
  return played;
}
