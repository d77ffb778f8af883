import { expect, test } from "vitest";
import { scriptedModel } from "./scripted-model.ts";

test("a step that no scripted model knows is refused, and not skipped", () => {
  // What a program in plain JavaScript may hand in.
  const slip: unknown = [{ say: "hello" }];
  expect(() => scriptedModel(slip as never)).toThrow("says what to `do`: connect, say");
});

test("a script that has run out fails the request, and does not hang", async () => {
  const model = scriptedModel();
  await expect(model.doStream({ prompt: [] })).rejects.toThrow("no script left");
});
