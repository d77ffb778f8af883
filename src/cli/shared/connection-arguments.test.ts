import { resolve } from "node:path";
import { expect, test } from "vitest";
import { connectionArguments } from "./connection-arguments.ts";

test("connection arguments that are pasted elsewhere name the same Belay, even with a space in a path", () => {
  expect(connectionArguments({})).toBe("");
  expect(connectionArguments({ home: "a b" })).toBe(` --home '${resolve("a b")}'`);
  expect(connectionArguments({ url: "http://127.0.0.1:1", tokenFile: "/t" })).toBe(
    " --url http://127.0.0.1:1 --token-file /t",
  );
  expect(connectionArguments({ store: ":memory:" })).toBe("");
});
