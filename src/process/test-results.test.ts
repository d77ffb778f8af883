import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Machine } from "./machine.ts";
import { PROC_SIGHT } from "./proc-sight.ts";
import { keyOf, loadResults, saveResults } from "./test-results.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "belay-results-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const machine: Machine = {
  ...{ platform: "linux", kernel: "6.14.0", root: false, mayUnshare: false, capsPerNamespace: true },
  ...{ programs: {}, cgroup: undefined },
};

const keep = (kept: unknown): void => writeFileSync(join(dir, "containment.json"), JSON.stringify(kept));

describe("what was found out", () => {
  test("is found again under the same key, is nobody else's to read, and leaves no draft", () => {
    const results = { unshare: { kind: "passed" }, cgroup: { kind: "failed", why: "no group" } } as const;
    saveResults(dir, "key", results);
    expect(loadResults(dir, "key")).toEqual(results);
    expect(readdirSync(dir)).toEqual(["containment.json"]);
    expect(statSync(join(dir, "containment.json")).mode & 0o777).toBe(0o600);
  });

  test("under another key counts for nothing", () => {
    saveResults(dir, "key", { unshare: { kind: "passed" } });
    expect(loadResults(dir, "other")).toEqual({});
  });

  test.each([
    ["nothing", undefined],
    ["no object", 7],
    ["null", null],
    ["an object without a key", { results: { unshare: { kind: "passed" } } }],
    ["no results", { key: "key" }],
    ["results that are none", { key: "key", results: null }],
    ["results that are a text", { key: "key", results: "passed" }],
  ])("and damaged counts for nothing: %s", (_, kept) => {
    if (kept === undefined) writeFileSync(join(dir, "containment.json"), "{");
    else keep(kept);
    expect(loadResults(dir, "key")).toEqual({});
  });

  test("is taken mechanism by mechanism: whatever is not surely passed has failed or is unknown", () => {
    const results = {
      ...{ bubblewrap: "passed", unshare: null, cgroup: {}, anchor: { kind: "odd" }, stranger: { kind: "passed" } },
      group: { kind: "failed", why: 7 },
    };
    keep({ key: "key", results });
    const failed = { kind: "failed", why: "it failed" };
    expect(loadResults(dir, "key")).toEqual({ anchor: failed, group: failed });
  });

  test("that cannot be kept stops nobody", () => {
    saveResults(join(dir, "not", "there"), "key", {});
    expect(readdirSync(dir)).toEqual([]);
    // The place is taken by a directory: the draft is written, and cannot be moved there.
    const other = mkdtempSync(join(dir, "taken-"));
    mkdirSync(join(other, "containment.json"));
    saveResults(other, "key", {});
    expect(readdirSync(other).filter((name) => name.startsWith("."))).toEqual([]);
  });
});

test("a key changes with the kernel, our rights, the sight and the very programs", () => {
  const program = join(dir, "bwrap");
  writeFileSync(program, "one");
  const base: Machine = { ...machine, programs: { bwrap: program } };
  const before = keyOf(base, PROC_SIGHT);
  expect(keyOf(base, PROC_SIGHT)).toBe(before);
  expect(keyOf(base, undefined)).not.toBe(before);
  expect(keyOf({ ...base, kernel: "6.15.0" }, PROC_SIGHT)).not.toBe(before);
  expect(keyOf({ ...base, mayUnshare: true }, PROC_SIGHT)).not.toBe(before);
  expect(keyOf({ ...base, cgroup: "/own" }, PROC_SIGHT)).not.toBe(before);
  expect(keyOf({ ...base, programs: {} }, PROC_SIGHT)).not.toBe(before);
  writeFileSync(program, "another");
  expect(keyOf(base, PROC_SIGHT)).not.toBe(before);
  rmSync(program);
  expect(keyOf(base, PROC_SIGHT)).not.toBe(before);
});
