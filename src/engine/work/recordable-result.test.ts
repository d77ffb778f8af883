// Results that are not JSON, or too large.
import { expect, test } from "vitest";
import { CALL_BYTES_MAX, JSON_DEPTH_MAX, RESULT_CHARS_KEPT, RESULT_ITEMS_MAX } from "../../core/limits.ts";
import { recordableResult } from "./recordable-result.ts";

class Point {
  readonly x = 1;
  readonly #hidden = 2;
  get hidden(): number {
    return this.#hidden;
  }
}

const round: { self?: object; n: number } = { n: 1 };
round.self = round;

const deep = (levels: number): unknown => (levels === 0 ? NaN : [deep(levels - 1)]);
const locked = new Proxy(
  {},
  {
    get: () => {
      throw new Error("no");
    },
    ownKeys: () => {
      throw new Error("no");
    },
  },
);

test.each([
  ["JSON as it is", { a: [1, "b", null] }, { a: [1, "b", null] }],
  ["a Map with names", new Map([["a", new Map([["b", 1]])]]), { a: { b: 1 } }],
  [
    "a Map with other keys",
    new Map<unknown, unknown>([
      [1, "a"],
      ["b", 2],
    ]),
    [
      [1, "a"],
      ["b", 2],
    ],
  ],
  ["a Set", new Set(["a", 1]), ["a", 1]],
  ["a Date", { at: new Date(0) }, { at: "1970-01-01T00:00:00.000Z" }],
  ["a Date that is none, beside a BigInt", { at: new Date(NaN), n: 1n }, { at: null, n: "1" }],
  ["a BigInt", 12345678901234567890n, "12345678901234567890"],
  ["numbers that JSON does not have", [NaN, Infinity, -Infinity], ["NaN", "Infinity", "-Infinity"]],
  ["a list with undefined", [1, undefined, 2], [1, null, 2]],
  ["a list with holes", Object.assign([], { 1: 2n }), [null, "2"]],
  ["bytes", new Uint8Array([104, 105]), { bytes: 2, base64: "aGk=" }],
  ["a buffer inside", { a: 1n, b: new Uint8Array([104, 105]).buffer }, { a: "1", b: { bytes: 2, base64: "aGk=" } }],
  ["an instance of a class", new Point(), { x: 1 }],
  [
    "an error",
    Object.assign(new TypeError("no", { cause: "why" }), { status: 4 }),
    { name: "TypeError", message: "no", cause: "why", status: 4 },
  ],
  ["a function and a symbol", { f: () => 1, s: Symbol("s") }, { f: "[a function]", s: "[a symbol]" }],
  ["a circle", round, { n: 1, self: "[a reference to an object around it]" }],
  ["half a character", { a: "\ud800", n: 1n }, { a: "\ufffd", n: "1" }],
  ["what cannot be read", locked, "[The call has finished. It cannot be read.]"],
])("%s", (_, given, kept) => {
  expect(recordableResult(given, "It")).toEqual(kept);
});

test("the same object in two places is not a cycle", () => {
  const one = { n: 1n };
  expect(recordableResult([one, one], "It")).toEqual([{ n: "1" }, { n: "1" }]);
});

test("deep nesting is cut at the limit", () => {
  expect(JSON.stringify(recordableResult(deep(JSON_DEPTH_MAX + 5), "It"))).toContain("[nested deeper than 64 levels]");
});

test("G33: an object that references everything is not traversed to its end", () => {
  const many = Array.from({ length: RESULT_ITEMS_MAX + 5 }, () => ({ n: 1n }));
  const kept = recordableResult(many, "It");
  expect(Array.isArray(kept) && kept.at(-1)).toBe(`[more than ${RESULT_ITEMS_MAX} objects]`);
});

test("G33: a large object is kept as the beginning and the end of its JSON, within the limit, escapes included", () => {
  for (const given of [{ text: "\u0001".repeat(CALL_BYTES_MAX) }, "\u0001".repeat(CALL_BYTES_MAX)]) {
    const kept = recordableResult(given, "It");
    expect(kept).toMatch(
      /^\[The call has finished\. It has \d+ bytes; 1048576 are kept\. \d+ characters in the middle/,
    );
    expect(JSON.stringify(kept).length).toBeLessThan(CALL_BYTES_MAX);
    expect(String(kept).length).toBeLessThan(RESULT_CHARS_KEPT + 300);
  }
});
