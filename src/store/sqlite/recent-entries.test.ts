import { expect, it } from "vitest";
import { RecentEntries } from "./recent-entries.ts";

it("keeps the entries that were set last, up to its size, and evicts the oldest", () => {
  const recent = new RecentEntries<string, number>(2);
  recent.set("a", 1);
  recent.set("b", 2);
  expect([recent.get("a"), recent.get("b")]).toEqual([1, 2]);
  recent.set("c", 3);
  expect([recent.get("a"), recent.get("b"), recent.get("c")]).toEqual([undefined, 2, 3]);
});

it("treats an entry that is set again as new, with its new value", () => {
  const recent = new RecentEntries<string, number>(2);
  recent.set("a", 1);
  recent.set("b", 2);
  recent.set("a", 3);
  recent.set("c", 4);
  expect([recent.get("a"), recent.get("b"), recent.get("c")]).toEqual([3, undefined, 4]);
});

it("forgets a deleted entry, and has space for another then", () => {
  const recent = new RecentEntries<string, number>(2);
  recent.set("a", 1);
  recent.set("b", 2);
  recent.delete("b");
  recent.set("c", 3);
  expect([recent.get("a"), recent.get("b"), recent.get("c")]).toEqual([1, undefined, 3]);
  recent.clear();
  expect(recent.get("a")).toBeUndefined();
});
