import fc from "fast-check";
import { expect, test } from "vitest";
import { countLineEnds } from "./line-ends.ts";

const oneByOne = (bytes: Uint8Array): number => bytes.reduce((sum, byte) => sum + (byte === 0x0a ? 1 : 0), 0);

test("G23: line ends are counted exactly, for any alignment in memory", () => {
  const byte = fc.oneof(fc.constant(0x0a), fc.constantFrom(0x0b, 0x8a, 0x00, 0xff), fc.nat({ max: 255 }));
  fc.assert(
    fc.property(fc.array(byte, { maxLength: 3_000, size: "max" }), fc.nat({ max: 7 }), (values, shift) => {
      const bytes = Uint8Array.from([...new Array<number>(shift).fill(0x0a), ...values]).subarray(shift);
      expect(countLineEnds(bytes)).toBe(oneByOne(bytes));
    }),
    { numRuns: 300 },
  );
});

test("a buffer of line ends only, and every value beside one", () => {
  expect(countLineEnds(new Uint8Array(1_000_003).fill(0x0a))).toBe(1_000_003);
  for (let value = 0; value < 256; value += 1) {
    const bytes = new Uint8Array(2_048).map((_, index) => (index % 3 === 0 ? 0x0a : value));
    expect(countLineEnds(bytes)).toBe(oneByOne(bytes));
  }
});
