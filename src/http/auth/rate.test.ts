import { expect, test } from "vitest";
import { manualClock } from "../../testing/manual-clock.ts";
import { TOKENS_MAX } from "../limits.ts";
import { RateLimits } from "./rate.ts";

test("a bucket allows its burst at once, then its rate, and returns the time to wait", () => {
  const clock = manualClock();
  const rates = new RateLimits(clock, { perSecond: 10, burst: 3 });
  expect([1, 2, 3].map(() => rates.take("ci"))).toEqual([undefined, undefined, undefined]);
  expect(rates.take("ci")).toBe(100);
  clock.tick(50);
  expect(rates.take("ci")).toBeCloseTo(50);
  clock.tick(50);
  expect(rates.take("ci")).toBeUndefined();
  clock.tick(3_600_000);
  expect([1, 2, 3, 4].map(() => rates.take("ci"))).toEqual([undefined, undefined, undefined, 100]);
});

test("unused names are removed, so that revoked tokens do not accumulate", () => {
  const clock = manualClock();
  const rates = new RateLimits(clock, { perSecond: 10, burst: 3 });
  for (let n = 0; n < 10 * TOKENS_MAX; n += 1) {
    rates.take(`token-${n}`);
    clock.tick(100);
  }
  expect(rates.size).toBeLessThanOrEqual(TOKENS_MAX);
});
