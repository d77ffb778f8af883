import fc from "fast-check";
import { expect, test } from "vitest";
import { boundaryAfter, boundaryAfterLoss, boundaryBefore, isBoundary, textOf } from "./character-boundary.ts";

/** Bytes at the limits of what may begin, continue or end a character. */
const EDGES = [0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed];
const MORE_EDGES = [0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff];
const piece = fc.oneof(
  fc.string({ unit: "binary", maxLength: 6 }).map((text) => [...Buffer.from(text)]),
  fc.array(fc.constantFrom(...EDGES, ...MORE_EDGES), { maxLength: 6 }),
);

/** Text with invalid bytes. */
const nearlyUtf8 = (maxLength: number): fc.Arbitrary<Uint8Array> =>
  fc.array(piece, { maxLength }).map((pieces) => Uint8Array.from(pieces.flat().slice(0, maxLength)));

const whole = (bytes: Uint8Array): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);

test("G23: cutting at a boundary does not change the text", {
  meta: { id: "G23/cut-on-character-boundary" },
}, () => {
  fc.assert(
    fc.property(nearlyUtf8(24), (bytes) => {
      for (let at = 0; at < bytes.length; at += 1) {
        if (!isBoundary(bytes, at)) continue;
        expect(textOf(bytes.subarray(0, at)) + textOf(bytes.subarray(at))).toBe(whole(bytes));
      }
    }),
    { numRuns: 2_000 },
  );
});

test("cutting anywhere else would change the text, or could with the next bytes", () => {
  fc.assert(
    fc.property(nearlyUtf8(12), (bytes) => {
      for (let at = 1; at < bytes.length; at += 1) {
        if (isBoundary(bytes, at)) continue;
        // The bytes up to here plus one: their decoding depends on whether they stay together. Different replacements
        // may look the same, so the number of characters is compared.
        const together = whole(bytes.subarray(0, at + 1));
        const apart = whole(bytes.subarray(0, at)) + whole(bytes.subarray(at, at + 1));
        expect([...apart].length).toBeGreaterThan([...together].length);
      }
    }),
    { numRuns: 2_000 },
  );
});

test("the end of the bytes is a boundary only if no later byte can change the text", () => {
  fc.assert(
    fc.property(nearlyUtf8(8), nearlyUtf8(4), (bytes, more) => {
      if (isBoundary(bytes, bytes.length))
        expect(textOf(bytes) + textOf(more)).toBe(whole(Buffer.concat([bytes, more])));
    }),
    { numRuns: 5_000 },
  );
  expect(isBoundary(Buffer.from("€").subarray(0, 2), 2)).toBe(false);
  expect(isBoundary(Buffer.from([0xe0, 0x80]), 2)).toBe(true);
});

test("the nearest boundary is at most three bytes away", () => {
  fc.assert(
    fc.property(nearlyUtf8(24), fc.nat({ max: 4 }), (bytes, back) => {
      const at = Math.max(0, bytes.length - back);
      expect(at - boundaryBefore(bytes, at)).toBeLessThanOrEqual(3);
      expect(boundaryAfter(bytes, 4) - 4).toBeLessThanOrEqual(3);
      expect(boundaryAfterLoss(bytes, 4) - 4).toBeLessThanOrEqual(3);
    }),
    { numRuns: 2_000 },
  );
});

test.each([
  ["a letter", [0x61], [0, 1]],
  ["two bytes", [0xc3, 0xa9], [0, 2]],
  ["three bytes", [0xe2, 0x82, 0xac], [0, 3]],
  ["four bytes", [0xf0, 0x9f, 0x92, 0xa9], [0, 4]],
  ["a byte that can begin nothing", [0xc0, 0x80], [0, 1, 2]],
  ["a surrogate, which is no character", [0xed, 0xa0, 0x80], [0, 1, 2, 3]],
  ["more than there are characters", [0xf4, 0x90, 0x80, 0x80], [0, 1, 2, 3, 4]],
  ["continuations of nothing", [0x80, 0x80, 0x80, 0x80, 0x80], [0, 1, 2, 3, 4, 5]],
])("boundaries of %s", (_, bytes, boundaries) => {
  const given = Uint8Array.from(bytes);
  const found = Array.from({ length: given.length + 1 }, (_one, at) => at).filter((at) => isBoundary(given, at));
  expect(found).toEqual(boundaries);
});

test("after a loss the rest of a character is skipped, and no more", () => {
  expect(boundaryAfterLoss(Uint8Array.from([0x82, 0xac, 0x61]), 0)).toBe(2);
  expect(boundaryAfterLoss(Uint8Array.from([0x80, 0x80, 0x80, 0x80]), 0)).toBe(3);
  expect(boundaryAfterLoss(Uint8Array.from([0x61]), 0)).toBe(0);
});

test("an incomplete character at the end has no boundary before the end itself", () => {
  const half = Uint8Array.of(0x41, 0xf0, 0x9f, 0x98);
  expect([boundaryAfter(half, 1), boundaryAfter(half, 2), boundaryAfter(half, 4)]).toEqual([1, 4, 4]);
});
