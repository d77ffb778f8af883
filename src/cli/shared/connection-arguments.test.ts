import { resolve } from "node:path";
import { expect, test } from "vitest";
import { connectionArguments } from "./connection-arguments.ts";

test("a line that is pasted elsewhere finds the same Belay, also by a path with a space in it", () => {
  expect(connectionArguments({})).toBe("");
  expect(connectionArguments({ home: "a b" })).toBe(` --home '${resolve("a b")}'`);
  expect(connectionArguments({ url: "http://127.0.0.1:1", tokenFile: "/t" })).toBe(
    " --url http://127.0.0.1:1 --token-file /t",
  );
  expect(connectionArguments({ store: ":memory:" })).toBe("");
});
