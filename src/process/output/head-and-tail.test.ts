import fc from "fast-check";
import { expect, test } from "vitest";
import { HeadAndTail } from "./head-and-tail.ts";

/** All bytes in memory, contiguously from `from`. */
function stretch(ends: HeadAndTail, from: number, to: number): number[] {
  const bytes: number[] = [];
  for (;;) {
    const piece = ends.piece(from + bytes.length, to);
    if (piece === undefined || piece.length === 0) return bytes;
    bytes.push(...piece);
  }
}

test("G23: the first and the last bytes are kept, for all sizes and pieces", () => {
  const sizes = fc.record({ headBytes: fc.nat({ max: 8 }), tailBytes: fc.integer({ min: 1, max: 8 }) });
  const pieces = fc.array(fc.uint8Array({ maxLength: 20 }), { maxLength: 12 });
  fc.assert(
    fc.property(sizes, pieces, (size, given) => {
      const ends = new HeadAndTail(size);
      for (const one of given) ends.take(one);
      const all = given.flatMap((one) => [...one]);
      const headTo = Math.min(all.length, size.headBytes);
      const tailFrom = Math.max(headTo, all.length - size.tailBytes);
      expect([ends.total, ends.headTo, ends.tailFrom]).toEqual([all.length, headTo, tailFrom]);
      expect(stretch(ends, 0, headTo)).toEqual(all.slice(0, headTo));
      expect(stretch(ends, tailFrom, all.length)).toEqual(all.slice(tailFrom));
      const both = ends.both();
      expect([[...both.head], [...both.tail]]).toEqual([all.slice(0, headTo), all.slice(tailFrom)]);
      for (let at = headTo; at < tailFrom; at += 1) expect(ends.piece(at, all.length)).toBeUndefined();
      expect(ends.piece(all.length, all.length + 1)).toBeUndefined();
    }),
    { numRuns: 2_000 },
  );
});

test("returned pieces do not change when more bytes come, nor when the caller reuses its buffer", () => {
  const ends = new HeadAndTail({ headBytes: 4, tailBytes: 4 });
  const given = Buffer.from("abcdefgh");
  ends.take(given);
  const [head, tail] = [ends.piece(0, 4), ends.piece(4, 8)];
  given.fill("-");
  ends.take(Buffer.from("ijklmnop"));
  expect([head, tail].map((one) => Buffer.from(one ?? []).toString())).toEqual(["abcd", "efgh"]);
});

test("a stream without bytes takes no memory, and a short one only its head", () => {
  const ends = new HeadAndTail({ headBytes: 64, tailBytes: 128 });
  expect(ends.heldBytes).toBe(0);
  ends.take(Buffer.from("short"));
  expect(ends.heldBytes).toBe(64);
});
