import { expect, test } from "vitest";
import { slots, slotsByKey } from "./slots.ts";

test("free slots are granted at once, and no more than exist", () => {
  const places = slots(2);
  const taken: string[] = [];
  for (const name of ["a", "b", "c"]) places.take(() => taken.push(name));
  expect(taken).toEqual(["a", "b"]);
});

test("a released slot goes to the oldest request", () => {
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

test("a cancelled request is not granted, and blocks no other", () => {
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

test("cancelling a granted request has no effect", () => {
  const places = slots(1);
  const taken: string[] = [];
  const dispose = places.take(() => taken.push("a"));
  dispose();
  places.take(() => taken.push("b"));
  expect(taken).toEqual(["a"]);
});

test("a slot released twice is released once", () => {
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

test("a request that is cancelled while slots are granted is not granted", () => {
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

test("many holders that release at once do not grow the stack", () => {
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

test.each([0, -1, 1.5, Number.NaN])("%s is not a valid number of slots", (max) => {
  expect(() => slots(max)).toThrow("at least 1");
});

test("slots of one key are shared, and removed once none is held or awaited", () => {
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
