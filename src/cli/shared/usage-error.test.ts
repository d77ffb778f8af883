// The error and the hint after a typing mistake.
import { describe, expect, test, vi } from "vitest";
import { ControlError } from "../../core/errors.ts";
import { makeProgram, runProgram } from "../program.ts";

/** The message and the hint of the error. */
async function refusal(...args: readonly string[]): Promise<string> {
  vi.spyOn(process.stderr, "write").mockReturnValue(true);
  const error: unknown = await runProgram(makeProgram(), args).catch((thrown: unknown) => thrown);
  if (!(error instanceof ControlError)) throw new Error(`${args.join(" ")} was not refused.`);
  expect(error.code).toBe("invalid");
  return `${error.message} ${error.hint}`;
}

describe("a mistyped argument is refused with a suggestion", () => {
  test.each([
    [["rum"], 'There is no command "rum". Did you mean: belay run?'],
    [["--xyzzy"], 'There is no option "--xyzzy". belay --help lists what there is.'],
    [["token"], "token needs a command: list, add, rotate, revoke, show. Try: belay token list"],
    [["token", "lst"], 'There is no command "lst". Did you mean: belay token list?'],
    [["completion", "csh"], 'completion cannot be "csh".'],
    [["run", "x", "--delivery", "ster"], '--delivery cannot be "ster". Did you mean steer? There are: queue, steer,'],
    [["serve", "--on-stop", "it's"], '--on-stop cannot be "it\'s". There are: park, cancel.'],
  ])("%j", async (args, text) => {
    expect(await refusal(...args)).toContain(text);
  });

  test.each([[["--home", "/h", "ps"]], [["--home", "ps"]], [["--home=/h", "ps"]]])(
    "%j: the error of an option before its command says where the option belongs",
    async (args) => {
      expect(await refusal(...args)).toContain("--home comes after a command. As in: belay ps --home");
    },
  );
});
