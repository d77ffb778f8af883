import { expect, test } from "vitest";
import { visibleText } from "./visible-text.ts";

test.each([
  ["plain text, with ümläuts and 漢字 and 🙂", "plain text, with ümläuts and 漢字 and 🙂"],
  ["rm \u202egpj.exe", "rm \\u{202e}gpj.exe"],
  ["a\u200bb\u2060c\ufeffd", "a\\u{200b}b\\u{2060}c\\u{feff}d"],
  ["\u001b[31mred", "\\u{001b}[31mred"],
  ["one\ntwo\tthree", "one\ntwo\\u{0009}three"],
  ["no\u00a0break", "no\\u{00a0}break"],
  ["blank\u2800filler\u3164tag\u{e0041}", "blank\\u{2800}filler\\u{3164}tag\\u{e0041}"],
  ["half \ud800 of a pair", "half \\u{d800} of a pair"],
])("%j is shown as %j", (text, shown) => {
  expect(visibleText(text)).toBe(shown);
});
