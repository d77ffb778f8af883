import { expect, test } from "vitest";
import { slots, slotsByKey } from "./slots.ts";

test("free places are handed out at once, and no more than there are", () => {
  const places = slots(2);
  const taken: string[] = [];
  for (const name of ["a", "b", "c"]) places.take(() => taken.push(name));
  expect(taken).toEqual(["a", "b"]);
});

test("a place that is given back goes to whoever has waited longest", () => {
  const places = slots(1);
  const taken: string[] = [];
  const giveBack: (() => void)[] = [];
  for (const name of ["a", "b", "c"]) {
    places.take((back) => {
      taken.push(name);
      giveBack.push(back);
    });
  }
  giveBack[0]?.();
  expect(taken).toEqual(["a", "b"]);
  giveBack[1]?.();
  expect(taken).toEqual(["a", "b", "c"]);
});

test("a wish that was taken back is not granted, and keeps nobody waiting", () => {
  const places = slots(1);
  const taken: string[] = [];
  let giveBack = (): void => expect.unreachable();
  places.take((back) => {
    giveBack = back;
  });
  const dispose = places.take(() => expect.unreachable());
  places.take(() => taken.push("c"));
  dispose();
  giveBack();
  expect(taken).toEqual(["c"]);
});

test("taking a wish back after it was granted changes nothing", () => {
  const places = slots(1);
  const taken: string[] = [];
  const dispose = places.take(() => taken.push("a"));
  dispose();
  places.take(() => taken.push("b"));
  expect(taken).toEqual(["a"]);
});

test("a place given back twice is given back once", () => {
  const places = slots(1);
  const taken: string[] = [];
  let giveBack = (): void => expect.unreachable();
  places.take((back) => {
    giveBack = back;
  });
  for (const name of ["b", "c"]) places.take(() => taken.push(name));
  giveBack();
  giveBack();
  expect(taken).toEqual(["b"]);
});

test("whoever takes the next wish back while places are handed out is heeded", () => {
  const places = slots(1);
  const taken: string[] = [];
  let giveBack = (): void => expect.unreachable();
  let dispose = (): void => expect.unreachable();
  places.take((back) => {
    giveBack = back;
  });
  places.take((back) => {
    taken.push("b");
    dispose();
    back();
  });
  dispose = places.take(() => expect.unreachable());
  places.take(() => taken.push("d"));
  giveBack();
  expect(taken).toEqual(["b", "d"]);
});

test("a long row of those who give back at once does not grow the stack", () => {
  const places = slots(1);
  let giveBack = (): void => expect.unreachable();
  let count = 0;
  places.take((back) => {
    giveBack = back;
  });
  for (let index = 0; index < 100_000; index += 1) {
    places.take((back) => {
      count += 1;
      back();
    });
  }
  giveBack();
  expect(count).toBe(100_000);
});

test.each([0, -1, 1.5, Number.NaN])("%s is no number of places", (max) => {
  expect(() => slots(max)).toThrow("at least 1");
});

test("places of one key are shared, and are new once none of them is held or waited for", () => {
  const places = slotsByKey<string>(1);
  const held: (() => void)[] = [];
  const take = (key: string): (() => void) => places(key).take((giveBack) => held.push(giveBack));
  take("a");
  const dispose = take("a");
  take("b");
  expect(held).toHaveLength(2);
  dispose();
  dispose();
  held[0]?.();
  held[0]?.();
  take("a");
  expect(held).toHaveLength(3);
  take("a");
  expect(held).toHaveLength(3);
});
