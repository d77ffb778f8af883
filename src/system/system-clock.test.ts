import { expect, onTestFinished, test, vi } from "vitest";
import { systemClock } from "./system-clock.ts";

const DAY_MS = 24 * 60 * 60_000;

test("the wall clock returns the time of day, and the monotonic clock never goes backwards", () => {
  const [before, elapsed] = [Date.now(), systemClock.elapsed()];
  expect(systemClock.now()).toBeGreaterThanOrEqual(before);
  expect(systemClock.now() - before).toBeLessThan(DAY_MS);
  expect(systemClock.elapsed()).toBeGreaterThanOrEqual(elapsed);
});

test("a timer fires once, and a cancelled timer does not fire", async () => {
  const fired: string[] = [];
  const dispose = systemClock.after(0, () => fired.push("cancelled"));
  systemClock.after(0, () => fired.push("first"));
  dispose();
  // Timers of the same length fire in the order in which they were set.
  await new Promise<void>((resolve) => systemClock.after(0, resolve));
  expect(fired).toEqual(["first"]);
});

test("an idle timer does not keep the process alive; any other timer does", () => {
  const holding = (): number => process.getActiveResourcesInfo().filter((one) => one === "Timeout").length;
  const before = holding();
  const cancelIdle = systemClock.after(DAY_MS, () => {}, "idle");
  expect(holding()).toBe(before);
  const dispose = systemClock.after(DAY_MS, () => {});
  expect(holding()).toBe(before + 1);
  dispose();
  cancelIdle();
});

test("a timer of months fires when it is due, not immediately, and can be cancelled midway", () => {
  const set: { readonly ms: number; fire(): void }[] = [];
  const timers = vi.spyOn(globalThis, "setTimeout").mockImplementation(((fire: () => void, ms: number) => {
    set.push({ ms, fire });
    return set.length as unknown as NodeJS.Timeout;
  }) as typeof setTimeout);
  const cleared = vi.spyOn(globalThis, "clearTimeout").mockImplementation(() => {});
  onTestFinished(() => {
    timers.mockRestore();
    cleared.mockRestore();
  });
  let fired = 0;
  const dispose = systemClock.after(60 * DAY_MS, () => {
    fired += 1;
  });
  for (let step = 0; step < set.length && step < 9; step += 1) {
    expect(fired).toBe(0);
    // Node fires a longer timer immediately.
    expect(set[step]?.ms).toBeLessThan(2 ** 31);
    if (step === 1) dispose();
    set[step]?.fire();
  }
  expect(fired).toBe(1);
  expect(set.reduce((sum, { ms }) => sum + ms, 0)).toBe(60 * DAY_MS);
  // The timer that was set last by then.
  expect(cleared.mock.calls).toEqual([[2]]);
});
