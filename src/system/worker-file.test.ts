import { expect, test } from "vitest";
import { workerFile } from "./worker-file.ts";

test("a worker file is the module beside its caller, with the caller's extension", () => {
  expect(workerFile("runtime", import.meta.url).href).toBe(new URL("./runtime.ts", import.meta.url).href);
});

test.each([
  ["a file without other modules", "file:///app/bundle.js"],
  ["a format without import.meta", undefined],
  ["a URL that is not a file", "https://example.com/bundle.js"],
])("a worker file in a bundle is refused with a hint: %s", (_, beside) => {
  expect(() => workerFile("writer", beside)).toThrow(
    expect.objectContaining({ code: "invalid", hint: expect.stringContaining("serverExternalPackages") }),
  );
});
