import { expect, test } from "vitest";
import { countAreas, countWords, readLimits } from "./vocabulary.ts";

test("counts words in sentences and in names", () => {
  const found = [
    ["some", "body"],
    ["De", "sk"],
    ["goes", " on"],
  ].map((parts) => parts.join(""));
  expect(countWords(`${found[0]} has a Call${found[1]} that ${found[2]}`)).toBe(3);
  expect(countWords("the client, a subscriber, deskew, outdoors")).toBe(0);
});

test("no area has more of these words than its limit", () => {
  const limits = readLimits();
  const over = Object.entries(countAreas()).filter(([area, count]) => count > (limits[area] ?? 0));
  expect(over).toEqual([]);
});
