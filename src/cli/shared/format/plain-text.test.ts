import { expect, test } from "vitest";
import { plainLine, plainText } from "./plain-text.ts";

const ESC = "\u001b";

test.each([
  ["colour", `${ESC}[31mred${ESC}[0m`, "red"],
  ["cursor", `a${ESC}[2A${ESC}[2Kb`, "ab"],
  ["a title, ended by a bell", `${ESC}]0;owned\u0007text`, "text"],
  ["a link", `${ESC}]8;;https://example.com${ESC}\\here${ESC}]8;;${ESC}\\`, "here"],
  ["the same in eight bits", "\u009b31mred", "red"],
  ["a carriage return that would write over the line", "gone\rkept", "gone\nkept"],
  ["backspaces and bells", "a\b\b\u0007b\u007f", "ab"],
  ["turned text", "a\u202eb\u2066c\u200f", "abc"],
  ["line ends, tabs and other alphabets stay", "a\n\tb – ü 漢 👩‍🚀", "a\n\tb – ü 漢 👩‍🚀"],
])("%s", (_, text, plain) => {
  expect(plainText(text)).toBe(plain);
});

test("a split escape sequence cannot be completed by the next piece", () => {
  const halves = [`a${ESC}`, "[31mb"].map(plainText).join("");
  expect(halves).not.toContain(ESC);
});

test("plainLine() keeps text on one line and cuts it", () => {
  expect(plainLine("one\n  belay   run completed\r\n")).toBe("one belay run completed");
  expect(plainLine("x".repeat(50), 10)).toBe(`${"x".repeat(10)}…`);
});
