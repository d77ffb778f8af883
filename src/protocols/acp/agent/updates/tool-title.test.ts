import { describe, expect, test } from "vitest";
import { toolTitle } from "./tool-title.ts";

describe("the title and kind of a call", () => {
  test.each([
    ["shell", { command: "ls -l" }, "shell: ls -l", "execute"],
    ["shell", { command: ["ls", "-l"] }, "shell: ls -l", "execute"],
    ["read_file", { path: "a.txt" }, "read_file: a.txt", "read"],
    ["write_file", { path: "a.txt" }, "write_file: a.txt", "edit"],
    ["delete_file", { path: "a.txt" }, "delete_file: a.txt", "delete"],
    ["grep", { pattern: "x" }, "grep: x", "search"],
    ["fetch", { url: "https://example.com" }, "fetch: https://example.com", "fetch"],
    ["weather", { city: "Oslo" }, "weather", "other"],
    ["weather", null, "weather", "other"],
    ["weather", ["a"], "weather", "other"],
    ["weather", { path: 7 }, "weather", "other"],
  ] as const)("%s %j", (name, input, title, kind) => {
    expect(toolTitle(name, input as never, "/w")).toMatchObject({ title, kind });
  });

  test("a title is one short line", () => {
    const { title } = toolTitle("shell", { command: `a\nb ${"x".repeat(500)}` }, undefined);
    expect(title).not.toContain("\n");
    expect(title.length).toBeLessThanOrEqual(120);
  });
});

describe("the location of a call", () => {
  test("is an absolute path: its own, or relative to the session's directory", () => {
    expect(toolTitle("read_file", { path: "/a/b" }, "/w").locations).toEqual([{ path: "/a/b" }]);
    expect(toolTitle("read_file", { file: "b/../c" }, "/w").locations).toEqual([{ path: "/w/c" }]);
  });

  test("is omitted if the absolute path is unknown", () => {
    expect(toolTitle("read_file", { path: "b" }, undefined).locations).toEqual([]);
    expect(toolTitle("read_file", {}, "/w").locations).toEqual([]);
  });
});
