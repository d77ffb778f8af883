import { expect, test } from "vitest";
import {
  CALL_OPERATIONS,
  callScopesUpTo,
  exploreScope,
  OPERATIONS,
  processScopesUpTo,
  replayScope,
  scopesUpTo,
  WAIT_OPERATIONS,
  WAKE_OPERATIONS,
} from "./exhaustive.ts";

test("scopes are multisets: no two differ only in their order", () => {
  const scopes = scopesUpTo(3).map((scope) => scope.toSorted().join());
  expect(new Set(scopes).size).toBe(scopes.length);
  // 8 of one, 36 of two, 120 of three.
  expect(scopes).toHaveLength(8 + 36 + 120);
  expect(scopesUpTo(1).flat()).toEqual([...OPERATIONS]);
});

test("every interleaving of up to three operations breaks no guarantee", {
  timeout: 60_000,
  meta: { id: "sim/every-order-of-three-operations" },
}, async () => {
  let interleavings = 0;
  for (const scope of scopesUpTo(3)) {
    const result = await exploreScope(scope);
    expect(result.violations).toEqual([]);
    interleavings += result.interleavings;
  }
  expect(interleavings).toBeGreaterThan(2_000);
});

test("every interleaving of two operations on a run with calls breaks no guarantee", {
  timeout: 60_000,
  meta: { id: "sim/every-order-with-calls" },
}, async () => {
  const scopes = callScopesUpTo(2);
  expect(scopes).toHaveLength(CALL_OPERATIONS.length + (CALL_OPERATIONS.length * (CALL_OPERATIONS.length + 1)) / 2);
  let interleavings = 0;
  for (const scope of scopes) {
    const result = await exploreScope(scope);
    expect(result.violations).toEqual([]);
    interleavings += result.interleavings;
  }
  expect(interleavings).toBeGreaterThan(5_000);
});

test("every interleaving of two operations on processes breaks no guarantee", { timeout: 60_000 }, async () => {
  const scopes = processScopesUpTo(2);
  const count = (operations: readonly string[]): number => (operations.length * (operations.length + 3)) / 2;
  expect(scopes).toHaveLength(count(WAIT_OPERATIONS) + count(WAKE_OPERATIONS));
  let interleavings = 0;
  for (const scope of scopes) {
    const result = await exploreScope(scope);
    expect(result.violations).toEqual([]);
    interleavings += result.interleavings;
  }
  expect(interleavings).toBeGreaterThan(1_000);
});

test("an execution can be read again by its choices", async () => {
  const lines = await replayScope(["accept", "cancel-session"], []);
  expect(lines.some((line) => line.includes("cancel session"))).toBe(true);
  expect(lines).toEqual(await replayScope(["accept", "cancel-session"], []));
});
