import fc from "fast-check";
import { expect, test } from "vitest";
import { plainText } from "../format/plain-text.ts";
import { isWide } from "./answer-line.ts";
import { AGENT_MARK, inMargin, Margin } from "./margin.ts";

const widthOf = (row: string): number => [...row].reduce((sum, one) => sum + (isWide(one) ? 2 : 1), 0);

test("every row has the mark and fits the terminal, however the text is split into pieces", () => {
  const pieces = fc.array(fc.string({ unit: fc.constantFrom("x", " ", "\n", "\t", "漢", "é", "│", "\u0301") }));
  fc.assert(
    fc.property(pieces, fc.integer({ min: 8, max: 40 }), (texts, columns) => {
      const margin = new Margin(AGENT_MARK, () => columns);
      const formatted = texts.map((text) => margin.format(plainText(text))).join("") + margin.end();
      const rows = formatted.split("\n").slice(0, -1);
      for (const row of rows) {
        expect(row.startsWith(AGENT_MARK.trimEnd())).toBe(true);
        // The mark is one column wide, but counts as two here.
        expect(widthOf(row) - 1).toBeLessThan(columns + 1);
      }
      const all = formatted.replaceAll(/^│ ?/gm, "").replaceAll(/\s/g, "");
      expect(all).toBe(texts.join("").replaceAll(/\s/g, ""));
    }),
  );
});

test("lines are wrapped between words where possible", () => {
  expect(inMargin("· ", "one two three", 10)).toBe("· one two\n· three\n");
});
