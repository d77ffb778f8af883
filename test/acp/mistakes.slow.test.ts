// Tests of the ACP tests: known mistakes are found, and the source without them has none.
import { describe, expect, test } from "vitest";
import { mistake } from "../mistakes/mistake.ts";
import { hunt } from "./hunt.ts";
import { MISTAKES } from "./mistakes.ts";

describe("known mistakes", { timeout: 60_000 }, () => {
  test("a mistake whose mark is missing in the source is an error, not a find", async () => {
    const unmarked = mistake("marked-nowhere", "It has no mark.", (at) => at.remove());
    await expect(hunt([unmarked])).rejects.toThrow("No line is marked with @fault marked-nowhere.");
  });

  test.each(MISTAKES)("$name is found", async (known) => {
    expect(await hunt([known])).toMatch(/^.+: /);
  });

  test("the source without a mistake passes", async () => {
    expect(await hunt([])).toBeUndefined();
  });
});
