// The tests of the door, tested: known mistakes are found, and the door as it is has none of them.
import { describe, expect, test } from "vitest";
import { mistake } from "../mistakes/mistake.ts";
import { hunt } from "./hunt.ts";
import { MISTAKES } from "./mistakes.ts";

describe("known mistakes", { timeout: 60_000 }, () => {
  test("one whose mark is missing in the source is an error, and not one that was found", async () => {
    const unmarked = mistake("marked-nowhere", "It has no mark.", (at) => at.remove());
    await expect(hunt([unmarked])).rejects.toThrow("No line is marked with @fault marked-nowhere.");
  });

  test.each(MISTAKES)("$name is found", async (known) => {
    expect(await hunt([known])).toMatch(/^.+: /);
  });

  test("the door as it is has none", async () => {
    expect(await hunt([])).toBeUndefined();
  });
});
