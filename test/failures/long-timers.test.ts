// I3: a wait that is longer than any timer of the platform. Those fire at once when they are asked for more.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { webClock } from "../../src/client/web-clock.ts";
import type { Clock } from "../../src/ports/clock.ts";
import { systemClock } from "../../src/system/system-clock.ts";

/** The longest timer that Node and browsers take; a longer one they fire at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;
const DAY_MS = 24 * 60 * 60_000;

describe.each<[string, Clock]>([
  ["the real clock", systemClock],
  ["the clock of browsers", webClock],
])("%s", (_, clock) => {
  const asked: number[] = [];

  beforeEach(() => {
    asked.length = 0;
    vi.useFakeTimers();
    const { setTimeout: fake } = globalThis;
    // As the platform does it: what is too long is not long at all.
    vi.spyOn(globalThis, "setTimeout").mockImplementation(((call: () => void, ms: number) => {
      asked.push(ms);
      return fake(call, ms > TIMER_MS_MAX ? 1 : ms);
    }) as typeof setTimeout);
  });
  afterEach(() => {
    // In this order: restoring the spy puts the fake timer back.
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  test.each([30 * DAY_MS, TIMER_MS_MAX + 1, 365 * DAY_MS])(
    "I3: a wait of %i ms ends then, and not at once",
    { meta: { id: "G34/long-timer-not-early" } },
    (ms) => {
      const call = vi.fn();
      clock.after(ms, call);
      vi.advanceTimersByTime(ms - 1);
      expect(call).not.toHaveBeenCalled();
      vi.advanceTimersByTime(1);
      expect(call).toHaveBeenCalledTimes(1);
      expect(Math.max(...asked)).toBeLessThanOrEqual(TIMER_MS_MAX);
      vi.advanceTimersByTime(ms);
      expect(call).toHaveBeenCalledTimes(1);
    },
  );

  test("I3: a long wait can be taken back in each of its parts", { meta: { id: "G34/long-timer-cancellable" } }, () => {
    for (const before of [0, TIMER_MS_MAX - 1, TIMER_MS_MAX + 1]) {
      const call = vi.fn();
      const dispose = clock.after(2 * TIMER_MS_MAX, call);
      vi.advanceTimersByTime(before);
      dispose();
      vi.advanceTimersByTime(3 * TIMER_MS_MAX);
      expect(call).not.toHaveBeenCalled();
    }
  });
});
