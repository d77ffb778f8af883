// How many of the mutants were noticed.

export interface Tally {
  readonly killed: number;
  readonly survived: number;
  /** Not tried: only used while a file is loaded, or not even loadable. */
  readonly ignored: number;
}

/** A mutant that no test reaches has survived as well. */
const SURVIVED: ReadonlySet<string> = new Set(["Survived", "NoCoverage"]);
/** One that never ends was noticed, by whoever waited. */
const KILLED: ReadonlySet<string> = new Set(["Killed", "Timeout"]);

export function tallyOf(statuses: readonly string[]): Tally {
  const killed = statuses.filter((status) => KILLED.has(status)).length;
  const survived = statuses.filter((status) => SURVIVED.has(status)).length;
  return { killed, survived, ignored: statuses.length - killed - survived };
}

export const sumOf = (tallies: readonly Tally[]): Tally =>
  tallies.reduce((sum, one) => ({
    killed: sum.killed + one.killed,
    survived: sum.survived + one.survived,
    ignored: sum.ignored + one.ignored,
  }));

/** Percent, cut and not rounded: a score that is just missed is missed. */
export const scoreOf = ({ killed, survived }: Tally): number =>
  killed + survived === 0 ? 0 : Math.floor((killed * 10_000) / (killed + survived)) / 100;
