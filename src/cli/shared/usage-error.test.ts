// What is told to somebody who has mistyped something.
import { describe, expect, test, vi } from "vitest";
import { ControlError } from "../../core/errors.ts";
import { makeProgram, runProgram } from "../program.ts";

/** The refusal, as its message and its hint. */
async function refusal(...words: readonly string[]): Promise<string> {
  vi.spyOn(process.stderr, "write").mockReturnValue(true);
  const error: unknown = await runProgram(makeProgram(), words).catch((thrown: unknown) => thrown);
  if (!(error instanceof ControlError)) throw new Error(`${words.join(" ")} was not refused.`);
  expect(error.code).toBe("invalid");
  return `${error.message} ${error.hint}`;
}

describe("a word that is not understood", () => {
  test.each([
    [["rum"], 'There is no command "rum". Did you mean: belay run?'],
    [["--xyzzy"], 'There is no option "--xyzzy". belay --help lists what there is.'],
    [["token"], "token needs a command: list, add, rotate, revoke, show. Try: belay token list"],
    [["token", "lst"], 'There is no command "lst". Did you mean: belay token list?'],
    [["completion", "csh"], 'completion cannot be "csh".'],
    [["run", "x", "--delivery", "ster"], '--delivery cannot be "ster". Did you mean steer? There are: queue, steer,'],
    [["serve", "--on-stop", "it's"], '--on-stop cannot be "it\'s". There are: park, cancel.'],
  ])("%j", async (words, told) => {
    expect(await refusal(...words)).toContain(told);
  });

  test.each([[["--home", "/h", "ps"]], [["--home", "ps"]], [["--home=/h", "ps"]]])(
    "%j: an option before its command is told where it belongs",
    async (words) => {
      expect(await refusal(...words)).toContain("--home comes after a command. As in: belay ps --home");
    },
  );
});
