import { expect, test } from "vitest";
import { KillOrder } from "./kill-order.ts";

const [slow, quick, middling] = [{ id: "slow" }, { id: "quick" }, { id: "middling" }];

function timed(): KillOrder<{ readonly id: string }> {
  const order = new KillOrder();
  order.ran(slow, 900, false);
  order.ran(quick, 1, false);
  order.ran(middling, 30, false);
  return order;
}

test("slower tests come later", () => {
  expect(timed().sorted([slow, middling, quick])).toEqual([quick, middling, slow]);
});

test("the test that found the last mutant comes first", () => {
  const order = timed();
  order.ran(slow, 900, true);
  order.ran(middling, 30, true);
  expect(order.sorted([quick, slow, middling])).toEqual([middling, slow, quick]);
});

test("a find of long ago counts for nothing", () => {
  const order = timed();
  order.ran(slow, 900, true);
  for (let finds = 0; finds < 12; finds += 1) order.ran(middling, 30, true);
  expect(order.sorted([slow, quick, middling])).toEqual([middling, quick, slow]);
});

test("a test is as quick as it ever was", () => {
  const order = timed();
  order.ran(slow, 0.1, false);
  expect(order.usualMs(slow)).toBe(0.1);
  expect(order.usualMs({ id: "new" })).toBeUndefined();
  expect(order.sorted([quick, slow])).toEqual([slow, quick]);
});
