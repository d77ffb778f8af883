import fc from "fast-check";
import { expect, test } from "vitest";
import { isUnparsable, PARSED_LEVELS_MAX } from "./json-depth.ts";

const nested = (levels: number): string => `${"[".repeat(levels)}${"]".repeat(levels)}`;
const objects = (levels: number): string => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;

test.each([
  ["as many lists as there may be", nested(PARSED_LEVELS_MAX), false],
  ["one list more", nested(PARSED_LEVELS_MAX + 1), true],
  ["as many objects as there may be", objects(PARSED_LEVELS_MAX), false],
  ["one object more", objects(PARSED_LEVELS_MAX + 1), true],
  ["lists that nobody ends", "[".repeat(1_000_000), true],
  ["many beside each other", `[${"[{}],".repeat(100_000)}1]`, false],
  ["brackets in a string", JSON.stringify(nested(1_000)), false],
  ["brackets behind a quote in a string", JSON.stringify(`"${nested(1_000)}\\`), false],
  ["brackets behind a string that ends in a backslash", `{"a\\\\":${nested(1_000)}}`, true],
  ["brackets in a key", `{${JSON.stringify(nested(1_000))}:1}`, false],
  ["a string without an end", `"${nested(1_000)}`, false],
  ["nothing", "", false],
])("%s", (_, text, unparsable) => {
  expect(isUnparsable(text)).toBe(unparsable);
});

test("any valid JSON is parsed: brackets in strings and keys do not count as levels", {
  meta: { id: "json/brackets-in-strings-allowed" },
}, () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 6 }), (text) => !isUnparsable(text)),
    { numRuns: 5_000, seed: 7 },
  );
});
