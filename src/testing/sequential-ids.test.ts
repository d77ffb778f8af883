import { expect, test } from "vitest";
import { sequentialIds } from "./sequential-ids.ts";

test("each prefix is counted separately", () => {
  const ids = sequentialIds();
  expect([ids.make("run_"), ids.make("ses_"), ids.make("run_")]).toEqual(["run_1", "ses_1", "run_2"]);
});

test("different texts have different digests, equal texts the same", () => {
  const { digest } = sequentialIds();
  expect(digest("a")).toBe(digest("a"));
  expect(digest("a")).not.toBe(digest("b"));
});
