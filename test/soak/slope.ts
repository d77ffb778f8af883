// How fast something grows, and how sure that is: a straight line through means, with what it may be off by.
//
// Samples that follow each other are alike: memory goes up and down in waves of its own. A line through all of them
// would look far surer than it is. So the time is cut into a few stretches, each stretch has one mean, and the line
// goes through those.

export interface Sample {
  readonly atMs: number;
  readonly value: number;
}

export interface Slope {
  /** Per hour. */
  readonly perHour: number;
  /** The standard error of that. */
  readonly errorPerHour: number;
  /** With 95 % confidence it grows at least so fast. */
  readonly atLeastPerHour: number;
  readonly stretches: number;
}

/** As many means as the line goes through: enough for an error of its own, few enough to be independent. */
export const STRETCHES = 12;

const HOUR_MS = 3_600_000;

/** One-sided 95 %, by degrees of freedom from 1 on. */
const STUDENT = [6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, 1.83, 1.81] as const;
const STUDENT_LAST = 1.81;

/** Undefined: too few to say anything. */
export function slopeOf(samples: readonly Sample[]): Slope | undefined {
  const means = meansOf(samples);
  const count = means.length;
  if (count < 3) return undefined;
  const meanAt = mean(means.map(({ atMs }) => atMs));
  const meanValue = mean(means.map(({ value }) => value));
  const spread = sum(means.map(({ atMs }) => (atMs - meanAt) ** 2));
  const together = sum(means.map(({ atMs, value }) => (atMs - meanAt) * (value - meanValue)));
  const perMs = together / spread;
  const misses = means.map(({ atMs, value }) => value - meanValue - perMs * (atMs - meanAt));
  const errorPerMs = Math.sqrt(sum(misses.map((miss) => miss ** 2)) / (count - 2) / spread);
  const sure = STUDENT[count - 3] ?? STUDENT_LAST;
  return {
    perHour: perMs * HOUR_MS,
    errorPerHour: errorPerMs * HOUR_MS,
    atLeastPerHour: (perMs - sure * errorPerMs) * HOUR_MS,
    stretches: count,
  };
}

/** One mean for each stretch of the time that has samples. */
function meansOf(samples: readonly Sample[]): readonly Sample[] {
  const from = Math.min(...samples.map(({ atMs }) => atMs));
  const to = Math.max(...samples.map(({ atMs }) => atMs));
  const width = (to - from) / STRETCHES;
  if (samples.length === 0 || width === 0) return [];
  const stretches = Map.groupBy(samples, ({ atMs }) => Math.min(STRETCHES - 1, Math.floor((atMs - from) / width)));
  return [...stretches.values()].map((ones) => ({
    atMs: mean(ones.map(({ atMs }) => atMs)),
    value: mean(ones.map(({ value }) => value)),
  }));
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

const mean = (numbers: readonly number[]): number => sum(numbers) / numbers.length;
