import { expect, test } from "vitest";
import { checkedActor } from "./host-tokens.ts";

test("G35: the scopes of an actor can be a list or a set", () => {
  const found = { name: "ann", scopes: new Set(["read", "cancel"]), tenant: undefined };
  expect(checkedActor({ name: "ann", scopes: ["read", "cancel"] })).toEqual(found);
  expect(checkedActor({ name: "ann", scopes: new Set(["read", "cancel"]) })).toEqual(found);
});

test.each([
  [{ name: "ann", scopes: "read" }, "`scopes`: a list or a set"],
  [{ name: "ann" }, "`scopes`: a list or a set"],
  [{ name: "ann", scopes: ["root"] }, 'no scope "root"'],
  [{ name: "", scopes: [] }, "`name`"],
  [{ name: "ann", scopes: [], tenant: "A.B" }, "`tenant`"],
])("G35: an actor %j is refused", (given, message) => {
  expect(() => checkedActor(given)).toThrow(message);
});
