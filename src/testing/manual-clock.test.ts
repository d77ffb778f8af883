import { expect, test } from "vitest";
import { manualClock } from "./manual-clock.ts";

test("timers fire in the order of their time, each at its time", {
  meta: { id: "G34/timers-fire-in-order" },
}, async () => {
  const clock = manualClock(1000);
  const fired: string[] = [];
  clock.after(20, () => fired.push(`late at ${clock.elapsed()}`));
  clock.after(10, () => fired.push(`early at ${clock.elapsed()}`));
  clock.after(10, () => fired.push(`early too at ${clock.now()}`));
  await clock.advance(15);
  expect(fired).toEqual(["early at 10", "early too at 1010"]);
  expect(clock.pending).toEqual([{ inMs: 5, idle: false }]);
  await clock.advance(5);
  expect(fired.at(-1)).toBe("late at 20");
});

test("a cancelled timer does not fire", () => {
  const clock = manualClock();
  const dispose = clock.after(1, () => expect.unreachable());
  dispose();
  clock.tick(2);
  expect(clock.pending).toEqual([]);
});

test("timers set by a timer fire within the same move", async () => {
  const clock = manualClock();
  let fired = 0;
  const again = async (): Promise<void> => {
    fired += 1;
    await Promise.resolve();
    clock.after(10, () => void again());
  };
  clock.after(10, () => void again());
  await clock.advance(35);
  expect(fired).toBe(3);
});

test("a jump of the wall clock fires nothing and changes no duration", {
  meta: { id: "G34/clock-jump-fires-nothing" },
}, () => {
  const clock = manualClock(0);
  clock.after(10, () => expect.unreachable(), "idle");
  clock.jump(24 * 3_600_000);
  clock.tick(9);
  expect([clock.now(), clock.elapsed()]).toEqual([24 * 3_600_000 + 9, 9]);
  expect(clock.pending).toEqual([{ inMs: 1, idle: true }]);
});

test("after `wakeAfter` all due timers fire late, in one tick, in the order of their time", () => {
  const clock = manualClock(1000);
  const fired: string[] = [];
  clock.after(20, () => fired.push(`second at ${clock.elapsed()}`));
  clock.after(10, () => {
    fired.push(`first at ${clock.now()}`);
    clock.after(5, () => fired.push("not yet"));
    clock.after(0, () => fired.push("third"));
  });
  clock.wakeAfter(100);
  expect(fired).toEqual(["first at 1100", "second at 100", "third"]);
  expect(clock.pending).toEqual([{ inMs: 5, idle: false }]);
});
