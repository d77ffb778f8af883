import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { plain } from "./plain-text.ts";

const ESC = "\u001b";
const BEL = "\u0007";

/** Text with beginnings, middles and ends of every kind of terminal sequence. */
const noisy = fc
  .array(
    fc.oneof(
      fc.string({ unit: "binary", maxLength: 5 }),
      fc.constantFrom(ESC, `${ESC}[`, `${ESC}]`, `${ESC}P`, `${ESC}_`, `${ESC}\\`, `${ESC}(B`, BEL, "\u009b", "\u009d"),
      fc.constantFrom(
        "\u009c",
        "31m",
        "2K",
        "K",
        "1G",
        "999999999G",
        "5D",
        "\r",
        "\b",
        "\n",
        "\r\n",
        "\t",
        "\0",
        "é",
        "💩",
      ),
      fc.constantFrom("0;title", "8;;http://x", "abc", " ", "\u0018", "\u007f", "\ud800"),
    ),
    { maxLength: 30 },
  )
  .map((pieces) => pieces.join(""));

test("G23: the result contains no terminal control characters, for any input", {
  meta: { id: "G23/terminal-escapes-removed" },
}, () => {
  fc.assert(
    fc.property(noisy, (text) => {
      expect(plain(text)).not.toMatch(/(?![\n\t])\p{Cc}/u);
      expect(plain(plain(text))).toBe(plain(text));
      expect(plain(text).length).toBeLessThanOrEqual(text.length);
    }),
    { numRuns: 5_000 },
  );
});

test("text without control characters is unchanged", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 50 }), (text) => {
      const harmless = text.replaceAll(/(?![\n\t])\p{Cc}/gu, "");
      expect(plain(harmless)).toBe(harmless);
      // Even after a control character was removed, so that every line was processed.
      expect(plain(`\0${harmless}`)).toBe(harmless);
    }),
    { numRuns: 2_000 },
  );
});

test("a line end is never dropped, whatever sequence is open before it", () => {
  fc.assert(
    fc.property(noisy, (text) => {
      const ends = (one: string) => one.split("\n").length;
      expect(ends(plain(text))).toBe(ends(text));
    }),
    { numRuns: 5_000 },
  );
});

describe("control sequences", () => {
  test.each([
    ["colours", `${ESC}[1;31merror${ESC}[0m: no`, "error: no"],
    ["colours with colons", `${ESC}[38:2::255:0:0mred${ESC}[m`, "red"],
    ["private modes", `${ESC}[?25lhidden${ESC}[?25h${ESC}[?1049h`, "hidden"],
    ["one that differs only by an intermediate character", `abc\r${ESC}[ Kx`, "xbc"],
    ["intermediate characters", `${ESC}[0 qx${ESC}[!p`, "x"],
    ["the one-character form", "\u009b31mred\u009b0m", "red"],
    ["one that breaks off at the end", `text${ESC}[31`, "text"],
    ["one that breaks off in the text", `${ESC}[31é`, "é"],
    ["a title, ended by a bell", `${ESC}]0;root@host${BEL}$ ls`, "$ ls"],
    ["a title, ended properly", `${ESC}]2;x${ESC}\\done`, "done"],
    ["a link", `${ESC}]8;;https://example.com${ESC}\\here${ESC}]8;;${ESC}\\`, "here"],
    ["a clipboard", `a${ESC}]52;c;c2VjcmV0${BEL}b`, "ab"],
    ["one-character title and end", "\u009d0;title\u009cx", "x"],
    ["a title without an end", `a${ESC}]0;never ends\nnext line`, "a\nnext line"],
    ["a title without an end, at the end", `a${ESC}]0;never`, "a"],
    ["a title that another escape ends", `${ESC}]0;x${ESC}[1mbold`, "bold"],
    ["device control", `${ESC}P1$r0m${ESC}\\x`, "x"],
    ["application, privacy, start of string", `${ESC}_G${ESC}\\a${ESC}^p${ESC}\\b${ESC}Xs${ESC}\\c`, "abc"],
    ["single escapes", `${ESC}7a${ESC}8b${ESC}cc${ESC}=d${ESC}>e${ESC}Mf`, "abcdef"],
    ["character sets", `${ESC}(Ba${ESC})0b${ESC}#8c${ESC}%Gd`, "abcd"],
    ["an escape at the end", `a${ESC}`, "a"],
    ["an escape before a line end", `a${ESC}\nb`, "a\nb"],
    ["two escapes", `${ESC}${ESC}[31mx`, "x"],
    ["bells, nulls and others", `a\0b${BEL}c\u000bd\u000ce\u007ff\u0085g`, "abcdefg"],
  ])("%s", (_, text, shown) => {
    expect(plain(text)).toBe(shown);
  });
});

describe("rewritten lines", () => {
  test.each([
    ["line ends of other systems", "one\r\ntwo\r\n", "one\ntwo\n"],
    ["a progress bar", "10%\r50%\r100%\nok\n", "100%\nok\n"],
    ["one at its very end", "10%\r50%\r", "50%"],
    ["what a shorter text leaves", "downloading\rdone", "doneloading"],
    ["a line that is erased and written again", `downloading\r${ESC}[Kdone`, "done"],
    ["the same by other means", `downloading${ESC}[2K${ESC}[1Gdone`, "done"],
    ["a line that is erased", `spinning${ESC}[1G${ESC}[0K\nok`, "\nok"],
    ["the rest of a line that is erased", `abcdef${ESC}[3G${ESC}[K!`, "ab!"],
    ["a spinner", "|\b/\b-\b\\\bdone", "done"],
    ["bold, as manuals print it", "N\bNA\bAM\bME\bE", "NAME"],
    ["underlined, as manuals print it", "_\bf_\bi_\bl_\be", "file"],
    ["backspaces before the line", "\b\b\ba\nb\b\b\bc", "a\nc"],
    ["steps back", `abc${ESC}[2DX${ESC}[DY`, "aYc"],
    ["a column beyond the line", `a${ESC}[999999999Gb`, "ab"],
    ["characters of two units", "💩\ba\r💩", "💩"],
    ["the last character of one unit", "\uffffa\rb", "ba"],
    ["a move by more than one number", `abc${ESC}[1;2Gd${ESC}[1;2De`, "abcde"],
    ["a move by too large a number", `abc${ESC}[1234567890Dd`, "abcd"],
    ["colours over what was written", `abc\r${ESC}[0mx${ESC}[2my`, "xyc"],
    ["what is before the cursor is not erased", `abc${ESC}[1Kx`, "abcx"],
  ])("%s", (_, text, shown) => {
    expect(plain(text)).toBe(shown);
  });
});
