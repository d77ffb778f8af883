import { describe, expect, test } from "vitest";
import { checkReason } from "./input.ts";
import { WAIT_MS_MAX } from "./limits.ts";
import { UNREADABLE_NOTE as NOTE, readableReason, readableWait } from "./stop-form.ts";

describe("G7: an unreadable reason does not refuse a stop", () => {
  test.each([
    [undefined, undefined],
    [null, undefined],
    ["why", "why"],
    [7, NOTE],
    [["why"], NOTE],
    [{}, { kind: "user", note: NOTE }],
    [{ note: "why" }, { kind: "user", note: "why" }],
    [{ kind: "user" }, { kind: "user" }],
    [
      { kind: "user", note: null, by: "ann" },
      { kind: "user", by: "ann" },
    ],
    [
      { kind: "user", note: 7, by: 7 },
      { kind: "user", note: NOTE },
    ],
    [
      { kind: "closed", note: "why", more: 1 },
      { kind: "user", note: "why" },
    ],
    [
      { kind: "policy", note: "why", by: "ann" },
      { kind: "policy", note: "why" },
    ],
    [{ kind: "policy" }, { kind: "policy", note: NOTE }],
  ])("%j is %j", (given, read) => {
    expect(readableReason(given)).toEqual(read);
    expect(() => checkReason(readableReason(given))).not.toThrow();
  });
});

test.each([
  [5, 5],
  [5.5, 5],
  [-1, 0],
  [2 * WAIT_MS_MAX, WAIT_MS_MAX],
  [Number.POSITIVE_INFINITY, WAIT_MS_MAX],
  [Number.NaN, undefined],
  ["5", undefined],
  [null, undefined],
])("G7: a stop with the wait %j waits for %j", (given, read) => {
  expect(readableWait(given)).toBe(read);
});
