import { describe, expect, test } from "vitest";
import { clip, displayWidth, type Style, table } from "./table.ts";

const PLAIN: Style = { width: undefined, colour: "without" };
const COLUMNS = [{ title: "ID" }, { title: "TITLE", widthMin: 6 }, { title: "PHASE" }] as const;

describe("a table", () => {
  test("is aligned in columns without tabs, and no cell is cut if no width is given", () => {
    const lines = table(
      COLUMNS,
      [
        ["ses_1", "x".repeat(200), "open"],
        ["ses_22", "", "closed"],
      ],
      PLAIN,
    );
    expect(lines[0]).toBe(`ID      TITLE${" ".repeat(197)}PHASE`);
    expect(lines[1]).toContain("x".repeat(200));
    expect(lines[2]?.trimEnd()).toBe(`ses_22  -${" ".repeat(201)}closed`);
    expect(lines.join("")).not.toContain("\t");
  });

  test("fits the width of a terminal: columns with a minimum shrink, ids do not", () => {
    const lines = table(COLUMNS, [["ses_1234567890", "a title that is long", "open"]], { ...PLAIN, width: 32 });
    expect(lines[1]).toBe("ses_1234567890  a title …  open");
    for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(32);
  });

  test("cuts the whole line if no column can shrink further", () => {
    const lines = table(COLUMNS, [["ses_1234567890", "a title", "open"]], { ...PLAIN, width: 12 });
    expect(lines[1]).toBe("ses_1234567…");
  });

  test("sanitises cells: no line breaks, colours or window titles", () => {
    const lines = table(COLUMNS, [["ses_1", "one\ntwo\u001b]0;evil\u0007\u202e\u001b[31m", "open"]], PLAIN);
    expect(lines).toHaveLength(2);
    expect(lines[1]).toBe("ses_1  one two  open");
  });

  test("has a bold heading, if colour is on", () => {
    const lines = table(COLUMNS, [["ses_1", "t", "open"]], { width: 80, colour: "with" });
    expect(lines[0]?.startsWith("\u001b[1mID")).toBe(true);
    expect(lines[0]?.endsWith("PHASE\u001b[22m")).toBe(true);
    expect(lines[1]).not.toContain("\u001b");
  });
});

test.each([
  ["plain", 5],
  ["日本", 4],
  ["e\u0301te\u0301", 3],
  ["🙂!", 3],
  ["👩‍👩‍👧", 2],
  ["한글", 4],
])("%s takes %i columns", (text, width) => {
  expect(displayWidth(text)).toBe(width);
});

test.each([
  ["short", 10, "short"],
  ["exactly ten", 11, "exactly ten"],
  ["too long", 4, "too…"],
  ["日本語", 4, "日…"],
  ["日本語", 5, "日本…"],
  ["gone", 0, ""],
])("%j in %i columns is %j", (text, width, clipped) => {
  expect(clip(text, width)).toBe(clipped);
});
