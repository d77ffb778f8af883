import { expect, test } from "vitest";
import { suggest } from "./suggest.ts";

const commands = ["demo", "verify", "help"];

test.each([
  ["dmeo", "demo"],
  ["deom", "demo"],
  ["verfiy", "verify"],
  ["Verify", "verify"],
  ["hepl", "help"],
])("%s is a slip for %s", (typed, meant) => {
  expect(suggest(typed, commands)).toBe(meant);
});

test.each(["", "x", "frobnicate", "run"])("%j is nothing we know", (typed) => {
  expect(suggest(typed, commands)).toBeUndefined();
});
