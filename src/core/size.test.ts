import { expect, test } from "vitest";
import { heapBytes } from "./size.ts";

test("grows with the length of strings and the number of fields, and not with the size of numbers", () => {
  expect(heapBytes("x".repeat(1_000)) - heapBytes("")).toBe(2_000);
  expect(heapBytes(1)).toBe(heapBytes(1e300));
  expect(heapBytes([1, 2, 3]) - heapBytes([1, 2])).toBe(heapBytes({ a: 1, b: 2, c: 3 }) - heapBytes({ a: 1, b: 2 }));
});

test("counts all nested values", () => {
  const inner = heapBytes({ text: "inner" });
  expect(heapBytes([{ text: "inner" }, { text: "inner" }]) - heapBytes([null, null])).toBe(2 * inner);
  expect(heapBytes({ one: { text: "inner" } }) - heapBytes({ one: null })).toBe(inner);
  expect([heapBytes(null), heapBytes(undefined), heapBytes(true)]).toEqual([0, 0, 0]);
});
