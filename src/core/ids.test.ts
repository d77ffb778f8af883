// Ids lead back to where they belong, and carry nothing that could trip somebody.
import { expect, test } from "vitest";
import { callId, isCallId, isRunId, isSessionId, type RunId, runOf, turnId } from "./ids.ts";

const checks = [
  ["ses_", isSessionId],
  ["run_", isRunId],
  ["call_", isCallId],
] as const;

test("turns and calls are named after their run and their ordinal", () => {
  expect(turnId("run_abc", 1)).toBe("turn_abc.1");
  expect(callId("run_abc", 12)).toBe("call_abc.12");
});

test.each(["run_abc", "run_a.b", "run_a_b", "run_1"] satisfies RunId[])("work of %s leads back to it", (run) => {
  expect(runOf(turnId(run, 3))).toBe(run);
  expect(runOf(callId(run, 30))).toBe(run);
});

test.each(checks)("%s: letters, digits and the three marks are well formed", (prefix, check) => {
  expect(check(`${prefix}aZ09_.-`)).toBe(true);
  expect(check(`${prefix}x`)).toBe(true);
});

test.each(checks)("%s: a prefix alone, another prefix, or none is not an id", (prefix, check) => {
  expect(check(prefix)).toBe(false);
  expect(check(`x${prefix}abc`)).toBe(false);
  expect(check("turn_abc.1")).toBe(false);
  expect(check("")).toBe(false);
});

test.each(checks)("%s: G35: nothing that a path, a header or a terminal could trip over", (prefix, check) => {
  for (const bad of ["a b", "a/b", "a\n", "\na", "a\u0000", "a%2f", "ä", "a\u202e", "a;b", "a:b"]) {
    expect(check(`${prefix}${bad}`)).toBe(false);
  }
});

test.each(checks)("%s: G33: ids are bounded", (prefix, check) => {
  expect(check(prefix.padEnd(80, "x"))).toBe(true);
  expect(check(prefix.padEnd(81, "x"))).toBe(false);
});
