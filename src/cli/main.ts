// The command line: finds the command, carries it out, and leaves an exit code.
import "./guard-debugger.ts";
import { CommanderError } from "commander";
import { toControlError } from "../core/errors.ts";
import { makeProgram, runProgram } from "./program.ts";
import { EXIT_CODE, EXIT_OK, EXIT_SIGNAL } from "./shared/exit-code.ts";
import { stdoutLoss } from "./shared/stdout-errors.ts";
import { printError } from "./shared/terminal/terminal.ts";

async function main(words: readonly string[]): Promise<number> {
  try {
    await runProgram(makeProgram(), words);
    return Number(process.exitCode ?? EXIT_OK);
  } catch (error) {
    // Help or the version was asked for, and has been said.
    if (error instanceof CommanderError) return error.exitCode;
    throw error;
  }
}

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  process.exit(stdoutLoss(error) === "hangup" ? EXIT_SIGNAL.SIGHUP : (lostWords(error) ?? EXIT_OK));
});
// What is said beside the output is for whoever listens. Nobody has to: a run is not left because of that.
process.stderr.on("error", () => {});

/** Says what could not be written. Answers its exit code, or nothing if that is no error. */
function lostWords(error: NodeJS.ErrnoException): number | undefined {
  const lost = stdoutLoss(error);
  if (typeof lost === "string") return undefined;
  printError(lost);
  return EXIT_CODE[lost.code];
}

/**
 * Leaves once everything is said. Not by itself: a tool that was given up may still hold a timer or a socket. What went
 * wrong before counts more than words that were lost.
 */
function leave(code: number): void {
  process.stdout.write("", () => {
    const { errored } = process.stdout;
    const exit = code === EXIT_OK && errored ? (lostWords(errored) ?? code) : code;
    process.stderr.write("", () => process.exit(exit));
  });
}

main(process.argv.slice(2)).then(leave, (error: unknown) => {
  printError(error);
  leave(EXIT_CODE[toControlError(error).code]);
});
