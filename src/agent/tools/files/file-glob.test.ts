import { describe, expect, test } from "vitest";
import { globMatcher } from "./file-glob.ts";

describe("globMatcher()", () => {
  test.each([
    ["*.ts", "a.ts"],
    ["*.ts", "src/deep/a.ts"],
    ["./src/*.ts", "src/a.ts"],
    ["src/**/*.ts", "src/a.ts"],
    ["src/**/*.ts", "src/x/y/a.ts"],
    ["**", "anything/at/all"],
    ["src/**", "src/a/b"],
    ["**/test/**/*.ts", "a/test/b/c.ts"],
    ["*.{ts,tsx}", "a.tsx"],
    ["{src,test}/{a,b}.ts", "test/b.ts"],
    ["a?c", "abc"],
    ["[a-c]x", "bx"],
    ["[!a-c]x", "dx"],
    ["a*b*c", "a-b-b-c"],
    ["{", "{"],
    ["a[", "a["],
    ["ä?", "äö"],
  ])("%s matches %s", (pattern, path) => {
    expect(globMatcher(pattern)(path)).toBe(true);
  });

  test.each([
    ["*.ts", "a.tsx"],
    ["src/*.ts", "src/x/a.ts"],
    ["src/**/*.ts", "lib/a.ts"],
    ["a?c", "ac"],
    ["[a-c]x", "dx"],
    ["[!a-c]x", "ax"],
    ["*.{ts,tsx}", "a.js"],
    ["a.ts", "b/xa.ts"],
    [".", "a"],
  ])("%s does not match %s", (pattern, path) => {
    expect(globMatcher(pattern)(path)).toBe(false);
  });

  test("a pattern that defeats a backtracking matcher finishes", {
    meta: { id: "agent/glob-without-backtracking" },
  }, () => {
    const pattern = `${"*a".repeat(60)}b`;
    expect(globMatcher(pattern)("a".repeat(4_000))).toBe(false);
    expect(globMatcher(`${"**/".repeat(40)}x`)(`${"a/".repeat(400)}y`)).toBe(false);
  });

  test("braces that expand to too many patterns are refused", () => {
    expect(() => globMatcher("{a,b}".repeat(7))).toThrow("more than 64");
  });
});
