// Whether a figure is what its suite demands of one that is published.
import { type Figure, numberIn, valueIn } from "./figure.ts";
import type { Suite } from "./published-suite.ts";

/** What is wrong with it. None: it holds. */
export function shortcomings(suite: Suite, figure: Figure): readonly string[] {
  const { demands, name } = suite;
  const { result, exitCode } = figure;
  const said = (problem: string): string => `${name}: ${problem}`;
  const count = (key: string): number => numberIn(result, key) ?? Number.NaN;
  const { zero = [], atLeast = {}, some = [], same, empty = [] } = demands;
  return [
    ...((exitCode === 0) === (demands.ends === "holds") ? [] : [said(`it has ended with ${exitCode}`)]),
    ...zero.filter((key) => count(key) !== 0).map((key) => said(`${key} is ${valueIn(result, key)}, and must be 0`)),
    ...some
      .filter((key) => !(count(key) > 0))
      .map((key) => said(`${key} is ${valueIn(result, key)}, and must be more than 0`)),
    ...Object.entries(atLeast)
      .filter(([key, least]) => !(count(key) >= least))
      .map(([key, least]) => said(`${key} is ${valueIn(result, key)}, and must be at least ${least}`)),
    ...(same === undefined || (count(same[0]) === count(same[1]) && count(same[0]) > 0)
      ? []
      : [said(`${same[0]} is ${result[same[0]]} and ${same[1]} is ${result[same[1]]}`)]),
    ...empty.filter((key) => !isEmpty(result[key])).map((key) => said(`${key} has ${JSON.stringify(result[key])}`)),
    ...(figure.commit.includes("+changes") ? [said("it was made with changes that are in no commit")] : []),
  ];
}

const isEmpty = (value: unknown): boolean => Array.isArray(value) && value.length === 0;
