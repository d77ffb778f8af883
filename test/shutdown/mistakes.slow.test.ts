// The table of situations, tested: known mistakes of the shutdown are found, and the engine as it is has none of them.
import { describe, expect, test } from "vitest";
import { huntIn } from "../mistakes/hunt.ts";
import { editModules, type Mistake } from "../mistakes/mistake.ts";
import { MISTAKES } from "./mistakes.ts";

const SILENT_MS = 20_000;

const hunt = (mistakes: readonly Mistake[]): Promise<string | undefined> =>
  huntIn(new URL("./mistake-worker.ts", import.meta.url), editModules(mistakes), SILENT_MS);

describe("known mistakes", { timeout: 60_000 }, () => {
  test.each(MISTAKES)("$name is found", async (known) => {
    expect(await hunt([known])).toMatch(/^(G\d+|no end)/);
  });

  test("the engine as it is has none", async () => {
    expect(await hunt([])).toBeUndefined();
  });
});
