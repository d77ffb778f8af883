import { expect, test } from "vitest";
import { brief, keptJson } from "./kept-json.ts";
import { DEPTH_MAX } from "./limits.ts";

test("JSON is kept unchanged, except for malformed text", () => {
  expect(keptJson({ a: [1, "x", null], b: "\ud800" })).toEqual({ a: [1, "x", null], b: "\ufffd" });
});

test("G33: a value that is too long or too deep is replaced by a remark", () => {
  expect(keptJson("x".repeat(50), 20)).toEqual({ leftOut: "It has 52 characters; at most 20 are kept." });
  let deep: unknown = 0;
  for (let depth = 0; depth <= DEPTH_MAX; depth += 1) deep = [deep];
  expect(keptJson(deep)).toEqual({ leftOut: "It is nested too deeply to be kept." });
});

test("a text is not cut within a character", () => {
  expect(brief("short", 10)).toBe("short");
  expect(brief("0123456789", 5)).toBe("0123…");
  expect(brief("012😀456789", 5).isWellFormed()).toBe(true);
});
