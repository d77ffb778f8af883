// The size of a prompt in the queue.
import fc from "fast-check";
import { expect, test } from "vitest";
import { promptBytes, utf8Bytes } from "./prompt.ts";

test.each([
  ["", 0],
  ["abc", 3],
  ["\u007f", 1],
  ["\u0080", 2],
  ["é", 2],
  ["\u07ff", 2],
  ["\u0800", 3],
  ["€", 3],
  ["\ud7ff", 3],
  ["\ue000", 3],
  ["\uffff", 3],
  ["😀", 4],
  ["\u{10000}", 4],
  ["\u{10ffff}", 4],
  ["a😀é€", 10],
])("%j is %i bytes of UTF-8", (text, bytes) => {
  expect(utf8Bytes(text)).toBe(bytes);
});

test("G33: any well-formed text counts its bytes on the wire", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      expect(utf8Bytes(text)).toBe(Buffer.byteLength(text, "utf8"));
    }),
  );
});

test("data counts its bytes as JSON", () => {
  expect(promptBytes({ text: "héllo" })).toBe(6);
  expect(promptBytes({ text: "", data: { a: "€" } })).toBe(11);
  expect(promptBytes({ text: "x", data: null })).toBe(5);
});
