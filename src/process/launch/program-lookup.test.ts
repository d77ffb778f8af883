import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { findProgram, resolveProgram } from "./program-lookup.ts";

let home: string;
beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), "belay-program-")));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

/** Creates a file in a folder. */
function put(folder: string, name: string, mode = 0o755): string {
  mkdirSync(join(home, folder), { recursive: true });
  writeFileSync(join(home, folder, name), "#!/bin/sh\n");
  chmodSync(join(home, folder, name), mode);
  return join(home, folder, name);
}

describe("`findProgram`", () => {
  test("finds the first executable on the PATH", () => {
    put("a", "tool", 0o644);
    const tool = put("b", "tool");
    put("c", "tool");
    expect(findProgram("tool", ["a", "b", "c"].map((one) => join(home, one)).join(":"))).toBe(tool);
  });

  test("finds the system's programs, whatever the PATH is", () => {
    expect(findProgram("sh", "")).toBe("/usr/bin/sh");
    expect(findProgram("sh", "/no/such/place")).toBe("/usr/bin/sh");
  });

  test("searches our own PATH by default", () => {
    expect(findProgram("sh")).toMatch(/\/sh$/);
    expect(findProgram("belay-no-such-program")).toBeUndefined();
  });

  test("never uses the working directory, which an empty or relative entry means", () => {
    const before = process.cwd();
    put("a", "belay-tool");
    process.chdir(home);
    try {
      expect(findProgram("belay-tool", ":a:.")).toBeUndefined();
    } finally {
      process.chdir(before);
    }
  });

  test("takes a name with a slash as a path", () => {
    const tool = put("a", "tool");
    expect(findProgram(tool, "")).toBe(tool);
    expect(findProgram(`${tool}-not`, "")).toBeUndefined();
    expect(findProgram(join(home, "a"), "")).toBeUndefined();
  });
});

describe("`resolveProgram`", () => {
  const resolve = (name: string, path?: string): string =>
    resolveProgram(name, home, path === undefined ? {} : { PATH: path });

  test("searches the PATH of the command's own environment, relative entries below its own directory", () => {
    const tool = put("bin", "tool");
    expect(resolve("tool", join(home, "bin"))).toBe(tool);
    expect(resolve("tool", "/no/such/place:bin")).toBe(tool);
  });

  test("takes a name with a slash as a path, below the command's directory if it is relative", () => {
    const tool = put("bin", "tool");
    expect(resolve("./bin/tool")).toBe(tool);
    expect(resolve(tool)).toBe(tool);
  });

  test("skips a file that is not executable, if there is another", () => {
    put("a", "tool", 0o644);
    const tool = put("b", "tool");
    expect(resolve("tool", "a:b")).toBe(tool);
  });

  test.each([
    ["tool", "a:b", '"tool" was not started: there is no program of that name on the PATH.'],
    ["tool", undefined, '"tool" was not started: there is no program of that name on the PATH.'],
    ["text", "b:a:c", '"text" was not started: HOME/a/text is not executable for the server\'s user.'],
    ["./a/text", "", '"./a/text" was not started: it is not executable for the server\'s user.'],
    ["./a/none", "", '"./a/none" was not started: there is no such file.'],
    ["./a", "", '"./a" was not started: it is not a file.'],
  ])("rejects %s on PATH %s with the reason", (name, path, message) => {
    put("a", "text", 0o644);
    put("c", "text", 0o644);
    const words = message.replace("HOME", home);
    expect(() => resolve(name, path)).toThrow(expect.objectContaining({ code: "not_started", message: words }));
  });

  test("gives a hint for a program that is on no PATH", () => {
    expect(() => resolve("tool", "")).toThrow(
      expect.objectContaining({ hint: "Check its name, install it, or give its path." }),
    );
  });
});
