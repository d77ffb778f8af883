import { describe, expect, test } from "vitest";
import { suggest } from "./suggest.ts";

const commands = ["demo", "verify", "help"];

test.each([
  ["dmeo", "demo"],
  ["deom", "demo"],
  ["verfiy", "verify"],
  ["Verify", "verify"],
  ["VERFY", "verify"],
  ["hepl", "help"],
])("%s is a typo of %s", (typed, meant) => {
  expect(suggest(typed, commands)).toBe(meant);
});

test.each(["", "x", "frobnicate", "run"])("%j is like none of the known words", (typed) => {
  expect(suggest(typed, commands)).toBeUndefined();
});

describe("a word is near enough", () => {
  test.each([
    ["three letters too many", "abcdefghi", "abcdef", true],
    ["four letters too many", "abcdefghij", "abcdef", false],
    ["three letters too few", "abcdef", "abcdefghi", true],
    ["four letters too few", "abcdef", "abcdefghij", false],
    ["three letters swapped with their neighbours", "badcfe", "abcdef", true],
    ["three wrong letters", "xyzdef", "abcdef", true],
    ["four wrong letters", "wxyzef", "abcdef", false],
    ["half of a short word", "xb", "ab", true],
    ["another letter", "x", "y", true],
    ["the same letter", "X", "x", true],
    ["a letter too few, at the beginning", "b", "ab", true],
    ["a letter too few, at the end", "a", "ab", true],
    ["half of an odd one, and the letter in the middle", "xyc", "abc", true],
    ["more than half of a short word", "xyzd", "abcd", false],
  ])("%s", (_, typed, word, near) => {
    expect(suggest(typed, [word])).toBe(near ? word : undefined);
  });

  test("of two equally near words the first is suggested", () => {
    expect(suggest("cat", ["bat", "rat"])).toBe("bat");
    expect(suggest("cat", ["rat", "bat"])).toBe("rat");
  });
});

test("the nearest word is the one that the definition gives, for all short words", () => {
  const words = ["", ..."ab"].flatMap((a) => ["", ..."ab"].flatMap((b) => [..."abc"].map((c) => `${a}${b}${c}a`)));
  for (const typed of words) {
    for (const one of words) {
      for (const other of words) {
        const [first, second] = [slips(typed, one), slips(typed, other)];
        const most = Math.min(3, Math.ceil(typed.length / 2));
        const nearest = first <= second ? one : other;
        const expected = Math.min(first, second) <= most ? nearest : undefined;
        expect(suggest(typed, [one, other]), `${typed}: ${one} or ${other}`).toBe(expected);
      }
    }
  }
});

const known = new Map<string, number>();

/** The distance by its definition, from the last letters on. */
function slips(from: string, to: string): number {
  const name = `${from} ${to}`;
  const before = known.get(name);
  if (before !== undefined) return before;
  const count = counted(from, to);
  known.set(name, count);
  return count;
}

function counted(from: string, to: string): number {
  if (from === "" || to === "") return from.length + to.length;
  const [x, y] = [from.slice(0, -1), to.slice(0, -1)];
  const ways = [slips(x, to) + 1, slips(from, y) + 1, slips(x, y) + (from.at(-1) === to.at(-1) ? 0 : 1)];
  const swapped = from.length > 1 && to.length > 1 && from.at(-1) === to.at(-2) && from.at(-2) === to.at(-1);
  return Math.min(...ways, ...(swapped ? [slips(from.slice(0, -2), to.slice(0, -2)) + 1] : []));
}
