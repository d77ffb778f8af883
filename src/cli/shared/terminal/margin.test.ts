import fc from "fast-check";
import { expect, test } from "vitest";
import { plainText } from "../format/plain-text.ts";
import { isWide } from "./answer-line.ts";
import { inMargin, Margin, SPOKEN } from "./margin.ts";

const widthOf = (row: string): number => [...row].reduce((sum, one) => sum + (isWide(one) ? 2 : 1), 0);

test("every row has the mark and fits the terminal, however the text is cut into pieces", () => {
  const pieces = fc.array(fc.string({ unit: fc.constantFrom("x", " ", "\n", "\t", "漢", "é", "│", "\u0301") }));
  fc.assert(
    fc.property(pieces, fc.integer({ min: 8, max: 40 }), (texts, columns) => {
      const margin = new Margin(SPOKEN, () => columns);
      const laid = texts.map((text) => margin.lay(plainText(text))).join("") + margin.end();
      const rows = laid.split("\n").slice(0, -1);
      for (const row of rows) {
        expect(row.startsWith(SPOKEN.trimEnd())).toBe(true);
        // The mark itself is one column wide, and counted as two here.
        expect(widthOf(row) - 1).toBeLessThan(columns + 1);
      }
      const all = laid.replaceAll(/^│ ?/gm, "").replaceAll(/\s/g, "");
      expect(all).toBe(texts.join("").replaceAll(/\s/g, ""));
    }),
  );
});

test("whole lines are broken between words where that can be", () => {
  expect(inMargin("· ", "one two three", 10)).toBe("· one two\n· three\n");
});
