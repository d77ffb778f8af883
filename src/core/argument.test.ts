// Exact to the byte: a command that passes these checks is recorded, and then passed to the system.
import { describe, expect, test } from "vitest";
import { problemOfCommand, problemOfPath } from "./argument.ts";
import { ARGUMENT_BYTES_MAX, ARGUMENT_OVERHEAD_BYTES, ARGUMENTS_BYTES_MAX, PATH_BYTES_MAX } from "./limits.ts";

const INTO_A_FILE = "Put it into a file, and pass the file's name.";

describe("a command", () => {
  test.each([
    ["a text", "x".repeat(ARGUMENT_BYTES_MAX - 1), "The command"],
    ["a text that is counted in bytes", `x${"é".repeat(ARGUMENT_BYTES_MAX / 2 - 1)}`, "The command"],
    ["an argument", ["echo", "x".repeat(ARGUMENT_BYTES_MAX - 1)], "Argument 1 of the command"],
  ])("%s may be as long as the system accepts", (_, longest, name) => {
    expect(problemOfCommand(longest)).toBeUndefined();
    const longer = typeof longest === "string" ? `${longest}x` : ["echo", `${longest[1]}x`];
    expect(problemOfCommand(longer)).toEqual({
      message: `${name} has ${ARGUMENT_BYTES_MAX} bytes; the system takes less than ${ARGUMENT_BYTES_MAX}.`,
      hint: INTO_A_FILE,
    });
  });

  test("its arguments count together, with the system's overhead for each", () => {
    const each = "x".repeat(1024 - ARGUMENT_OVERHEAD_BYTES);
    const full = Array.from({ length: ARGUMENTS_BYTES_MAX / 1024 }, () => each);
    expect(problemOfCommand(full)).toBeUndefined();
    const together = `${ARGUMENTS_BYTES_MAX + 1} bytes together; at most ${ARGUMENTS_BYTES_MAX} are taken.`;
    expect(problemOfCommand([`${each}x`, ...full.slice(1)])).toEqual({
      message: `The arguments have ${together}`,
      hint: INTO_A_FILE,
    });
  });

  test("characters that the system would misinterpret are named", () => {
    expect(problemOfCommand("a\0b")).toEqual({ message: "The command holds a NUL byte, which would end it there." });
    expect(problemOfCommand(["a", "\ud83d"])).toEqual({
      message: "Argument 1 of the command is not well-formed Unicode.",
    });
  });
});

test("a path is shorter than the system's limit, and well formed", () => {
  expect(problemOfPath("x".repeat(PATH_BYTES_MAX - 1), "It")).toBeUndefined();
  expect(problemOfPath("é".repeat(PATH_BYTES_MAX / 2), "It")?.message).toBe(
    "It has 4096 bytes; a path has less than 4096.",
  );
  expect(problemOfPath("a\0b", "It")?.message).toBe("It holds a NUL byte, which would end it there.");
  expect(problemOfPath("\udc00", "It")?.message).toBe("It is not well-formed Unicode.");
});
