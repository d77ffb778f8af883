import { expect, test } from "vitest";
import { scriptedModel } from "./scripted-model.ts";

test("an unknown step is refused, not skipped", () => {
  // A value that a JavaScript program may pass.
  const slip: unknown = [{ say: "hello" }];
  expect(() => scriptedModel(slip as never)).toThrow("must have a known `do`: connect, say");
});

test("a request beyond the last script fails, and does not hang", async () => {
  const model = scriptedModel();
  await expect(model.doStream({ prompt: [] })).rejects.toThrow("no script left");
});
