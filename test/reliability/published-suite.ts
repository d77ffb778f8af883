// A suite as the page tells of it, and what is demanded of its figure.

/** What a figure must be like to be published. */
export interface Demands {
  /** `fails`: it tests the tester, and must not hold. */
  readonly ends: "holds" | "fails";
  /** Counts that must be there and 0. */
  readonly zero?: readonly string[];
  /** Counts that must be there and at least this. */
  readonly atLeast?: Readonly<Record<string, number>>;
  /** Counts that must be above 0: proof that something was there to be found. */
  readonly some?: readonly string[];
  /** Two counts that must be the same, and not 0. */
  readonly same?: readonly [string, string];
  /** Lists that must be empty. */
  readonly empty?: readonly string[];
}

export interface Suite {
  /** Its file in docs/figures, and what `npm run figures` calls it. */
  readonly name: string;
  readonly title: string;
  readonly promised: string;
  readonly attacked: string;
  readonly violation: string;
  /** Words for npm, without --json. */
  readonly command: readonly [string, ...string[]];
  /** What is shown of its result, in order, with a word for each. */
  readonly shown: Readonly<Record<string, string>>;
  /** A part of its result that tells several things apart, and what is shown of each. */
  readonly apart?: { readonly key: string; readonly one: string; readonly shown: Readonly<Record<string, string>> };
  /** What one trial is, for the rule of three: the count of trials, and the word for one. */
  readonly trials?: { readonly count: string; readonly one: string };
  /** Samples over time, each drawn as a line: their list, their time in seconds, and what is drawn of each. */
  readonly plot?: { readonly key: string; readonly at: string; readonly shown: Readonly<Record<string, string>> };
  readonly demands: Demands;
}
