import { describe, expect, test } from "vitest";
import { manualClock } from "../../testing/manual-clock.ts";
import { until, within } from "./poll-until.ts";

describe("`until`", () => {
  test("polls at once, and does not wait if the condition holds already", async () => {
    const clock = manualClock();
    expect(await until(() => true, { clock, waitMs: 0 })).toBe(true);
    expect(clock.pending).toEqual([]);
  });

  test("polls less and less often, and returns false at the timeout", async () => {
    const clock = manualClock();
    const polls: number[] = [];
    const answer = until(
      () => {
        polls.push(clock.elapsed());
        return false;
      },
      { clock, waitMs: 100 },
    );
    await clock.advance(200);
    expect(await answer).toBe(false);
    expect(polls).toEqual([0, 1, 3, 7, 15, 31, 56, 81, 100]);
  });

  test("polls several times right after a wake-up, and then waits again", async () => {
    const clock = manualClock();
    const { promise, resolve } = Promise.withResolvers<void>();
    let polls = 0;
    const condition = (): boolean => {
      polls += 1;
      return polls === 5;
    };
    const answer = until(condition, { clock, waitMs: 1_000, wakes: [promise] });
    expect(polls).toBe(1);
    resolve();
    // No time has passed.
    expect(await answer).toBe(true);
    expect(clock.pending).toEqual([]);
  });

  test("does not spin after a wake-up that comes too early", async () => {
    const clock = manualClock();
    let polls = 0;
    const condition = (): boolean => {
      polls += 1;
      return clock.elapsed() >= 500;
    };
    const answer = until(condition, { clock, waitMs: 1_000, wakes: [Promise.resolve()] });
    while (clock.pending.length === 0 || polls < 10) await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(600);
    expect(await answer).toBe(true);
    expect(polls).toBeLessThan(50);
  });

  test("`within` returns undefined at the timeout", async () => {
    const clock = manualClock();
    const answer = within(clock, 50, new Promise(() => undefined));
    await clock.advance(50);
    expect(await answer).toBeUndefined();
    expect(await within(clock, 50, Promise.resolve("in time"))).toBe("in time");
    expect(clock.pending).toEqual([]);
  });
});
