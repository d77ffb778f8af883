import { expect, test } from "vitest";
import { workerFile } from "./worker-file.ts";

test("is the module beside the one that asks, as that is written", () => {
  expect(workerFile("runtime", import.meta.url).href).toBe(new URL("./runtime.ts", import.meta.url).href);
});

test.each([
  ["a file that has only itself", "file:///app/bundle.js"],
  ["a format that has no import.meta", undefined],
  ["an address that is no file", "https://example.com/bundle.js"],
])("is refused in a bundle, with what to do: %s", (_, beside) => {
  expect(() => workerFile("writer", beside)).toThrow(
    expect.objectContaining({ code: "invalid", hint: expect.stringContaining("serverExternalPackages") }),
  );
});
