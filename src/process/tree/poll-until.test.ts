import { describe, expect, test } from "vitest";
import { manualClock } from "../../testing/manual-clock.ts";
import { until, within } from "./poll-until.ts";

describe("looking until something is so", () => {
  test("looks at once, and answers without waiting if it is so already", async () => {
    const clock = manualClock();
    expect(await until(() => true, { clock, waitMs: 0 })).toBe(true);
    expect(clock.pending).toEqual([]);
  });

  test("looks less and less often, and gives up in time", async () => {
    const clock = manualClock();
    const looks: number[] = [];
    const answer = until(
      () => {
        looks.push(clock.elapsed());
        return false;
      },
      { clock, waitMs: 100 },
    );
    await clock.advance(200);
    expect(await answer).toBe(false);
    expect(looks).toEqual([0, 1, 3, 7, 15, 31, 56, 81, 100]);
  });

  test("looks when it is woken, several times at once, and then waits again", async () => {
    const clock = manualClock();
    const { promise, resolve } = Promise.withResolvers<void>();
    let looks = 0;
    const isSo = (): boolean => {
      looks += 1;
      return looks === 5;
    };
    const answer = until(isSo, { clock, waitMs: 1_000, wakes: [promise] });
    expect(looks).toBe(1);
    resolve();
    // No time has passed.
    expect(await answer).toBe(true);
    expect(clock.pending).toEqual([]);
  });

  test("a wake that comes too early does not make it spin", async () => {
    const clock = manualClock();
    let looks = 0;
    const isSo = (): boolean => {
      looks += 1;
      return clock.elapsed() >= 500;
    };
    const answer = until(isSo, { clock, waitMs: 1_000, wakes: [Promise.resolve()] });
    while (clock.pending.length === 0 || looks < 10) await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(600);
    expect(await answer).toBe(true);
    expect(looks).toBeLessThan(50);
  });

  test("a promise that takes too long is not waited for", async () => {
    const clock = manualClock();
    const answer = within(clock, 50, new Promise(() => undefined));
    await clock.advance(50);
    expect(await answer).toBeUndefined();
    expect(await within(clock, 50, Promise.resolve("in time"))).toBe("in time");
    expect(clock.pending).toEqual([]);
  });
});
