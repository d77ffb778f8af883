import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { describe as about, expect, test } from "vitest";
import { ControlError } from "../../core/errors.ts";
import { ARGUMENT_BYTES_MAX, ARGUMENTS_BYTES_MAX } from "../../core/limits.ts";
import type { CommandLine } from "../../ports/spawner.ts";
import { DESCRIPTION_CHARS_MAX } from "../limits.ts";
import { describe, quote, toArguments } from "./command-line.ts";

const refusal = (command: unknown): ControlError => {
  try {
    toArguments(command as CommandLine);
  } catch (error) {
    if (error instanceof ControlError) return error;
  }
  throw new Error("It was not refused.");
};

about("arguments", () => {
  test("a string goes to the shell unchanged, a list to the program unchanged", () => {
    expect(toArguments("echo  'a' | cat\n")).toEqual(["/bin/sh", "-c", "echo  'a' | cat\n"]);
    expect(toArguments(["ls", "", "-l a"])).toEqual(["ls", "", "-l a"]);
    expect(toArguments("ls -l +x")).toEqual(["/bin/sh", "-c", "ls -l +x"]);
  });

  test.each(["-x; echo heard", "+x; echo heard"])("a string that looks like options is still a command: %s", (text) => {
    const [program, ...args] = toArguments(text);
    const { stdout, stderr } = spawnSync(program, args, { encoding: "utf8" });
    expect(stdout).toBe("heard\n");
    expect(stderr).toContain("not found");
  });

  test.each([
    ["", "empty"],
    [" \n\t", "empty"],
    [[], "names no program"],
    [["", "a"], "names no program"],
    [["a", 1], "Argument 1 of the command must be a string"],
    [[1, "a"], "Argument 0 of the command must be a string"],
    [{ 0: "a" }, "a string, or a list"],
    ["a\0b", "NUL"],
    [["a", "b\0"], "Argument 1 of the command holds a NUL"],
    ["echo \ud800", "well-formed"],
    ["x".repeat(ARGUMENT_BYTES_MAX), "The command has 131072 bytes; the system takes less"],
    [["a", "é".repeat(ARGUMENT_BYTES_MAX / 2)], "Argument 1"],
  ])("%#: an invalid command is refused with the reason", (command, why) => {
    expect(refusal(command)).toMatchObject({ code: "invalid", message: expect.stringContaining(why) });
  });

  test("the longest accepted argument is accepted by the system", {
    meta: { id: "process/longest-argument-accepted" },
  }, () => {
    const args = toArguments(["true", "x".repeat(ARGUMENT_BYTES_MAX - 1)]);
    expect(spawnSync(args[0], args.slice(1)).status).toBe(0);
    expect(spawnSync("true", ["x".repeat(ARGUMENT_BYTES_MAX)]).error).toMatchObject({ code: "E2BIG" });
  });

  test("many small arguments count with the system's overhead for each", () => {
    const most = Math.floor(ARGUMENTS_BYTES_MAX / 10);
    expect(toArguments(["x", ...new Array<string>(most - 1).fill("x")])).toHaveLength(most);
    const { message, hint } = refusal(["x", ...new Array<string>(most).fill("x")]);
    expect([message.includes("together"), hint]).toEqual([true, "Put it into a file, and pass the file's name."]);
    expect(refusal("").hint).toBe(new ControlError("invalid", "any").hint);
    // To the byte: the rest of the division by ten goes to one of them.
    const rest = ARGUMENTS_BYTES_MAX - most * 10;
    const full = new Array<string>(most - 1).fill("x");
    expect(toArguments(["x".repeat(1 + rest), ...full])).toHaveLength(most);
    expect(refusal(["x".repeat(2 + rest), ...full]).message).toContain("together");
  });
});

about("quoting", () => {
  test("the shell parses quoted arguments back, one by one", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "binary" }), { minLength: 1, maxLength: 20 }), (given) => {
        const args = given.map((arg) => arg.replaceAll("\0", ""));
        const { stdout } = spawnSync("/bin/sh", ["-c", `printf '%s\\0' ${quote(args)}`], { encoding: "utf8" });
        expect(stdout).toBe(args.map((arg) => `${arg}\0`).join(""));
      }),
      { numRuns: 40 },
    );
  });

  test.each(["~", "=ls", "", "a b", "$x", "*", "a;b", "`x`", "!x", "#"])("%j is quoted", (arg) => {
    expect(quote([arg])).toBe(`'${arg}'`);
  });

  test("plain arguments are not quoted", () => {
    expect(quote(["git", "log", "--format=%H", "a/b.ts:1", "x@y"])).toBe("git log --format=%H a/b.ts:1 x@y");
  });
});

about("describing", () => {
  test("a command is one line that a shell would understand", () => {
    expect(describe(["echo", "a b"])).toBe("echo 'a b'");
    expect(describe("  make\nmake install\t\u001b[31m\u202e ")).toBe("make\\nmake install\\t\\u001b[31m\\u202e");
  });

  test("the description of any command is bounded and harmless to a terminal", () => {
    const unsafe = /[\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 500 }), (text) => {
        const line = describe(text);
        expect([...line].length).toBeLessThanOrEqual(DESCRIPTION_CHARS_MAX + 1);
        expect(line).not.toMatch(unsafe);
      }),
    );
  });

  test("a cut description ends in an ellipsis, and is not cut within a character", () => {
    expect(describe("😀".repeat(DESCRIPTION_CHARS_MAX))).toBe("😀".repeat(DESCRIPTION_CHARS_MAX));
    expect(describe("😀".repeat(DESCRIPTION_CHARS_MAX + 1))).toBe(`${"😀".repeat(DESCRIPTION_CHARS_MAX)}…`);
    // Escaped characters take more room, and are cut there.
    expect(describe(`${"\n".repeat(150)}x`.padStart(152, "y"))).toBe(`y${"\\n".repeat(99)}\\…`);
  });
});
