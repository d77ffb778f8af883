import { expect, test } from "vitest";
import { ListedChooser, SeededChooser, weighted } from "./chooser.ts";

test("a seed makes the same choices again, and neighbouring seeds make others", () => {
  const choices = (seed: number): readonly number[] => {
    const chooser = new SeededChooser(seed);
    return Array.from({ length: 50 }, () => chooser.below(10));
  };
  expect(choices(1)).toEqual(choices(1));
  expect(choices(1)).not.toEqual(choices(2));
  expect(new Set(choices(3)).size).toBeGreaterThan(5);
});

test("a list makes its choices, then the first, and remembers the widths", () => {
  const chooser = new ListedChooser([2, 1]);
  expect([chooser.below(3), chooser.below(2), chooser.below(4)]).toEqual([2, 1, 0]);
  expect(chooser.widths).toEqual([3, 2, 4]);
});

test("what has no weight is never chosen", () => {
  const chooser = new SeededChooser(1);
  const picked = new Set(
    Array.from({ length: 200 }, () =>
      weighted(chooser, [
        [1, "a"],
        [0, "b"],
        [3, "c"],
      ] as const),
    ),
  );
  expect([...picked].toSorted()).toEqual(["a", "c"]);
});
