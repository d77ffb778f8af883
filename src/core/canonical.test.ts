import { expect, test } from "vitest";
import { canonical } from "./canonical.ts";

test("the same value has the same text, whatever the order of its fields, at every depth", () => {
  const one = { text: "go", data: [{ b: [2, { d: 1, c: null }], a: 1 }] };
  const other = { data: [{ a: 1, b: [2, { c: null, d: 1 }] }], text: "go" };
  expect(canonical(one)).toBe(canonical(other));
  expect(canonical(one)).toBe('{"data":[{"a":1,"b":[2,{"c":null,"d":1}]}],"text":"go"}');
});

test("another value has another text: the order of a list counts, and so does every name", () => {
  const texts = [{ a: [1, 2] }, { a: [2, 1] }, { a: { 0: 1, 1: 2 } }, { b: [1, 2] }, JSON.parse('{"__proto__":[1,2]}')];
  expect(new Set(texts.map(canonical)).size).toBe(texts.length);
});
