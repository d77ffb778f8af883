// Entry point of the command line: runs the command and exits with its code.
import "./guard-debugger.ts";
import { CommanderError } from "commander";
import { toControlError } from "../core/errors.ts";
import { makeProgram, runProgram } from "./program.ts";
import { EXIT_CODE, EXIT_OK, EXIT_SIGNAL } from "./shared/exit-code.ts";
import { stdoutLoss } from "./shared/stdout-errors.ts";
import { printError } from "./shared/terminal/terminal.ts";

async function main(args: readonly string[]): Promise<number> {
  try {
    await runProgram(makeProgram(), args);
    return Number(process.exitCode ?? EXIT_OK);
  } catch (error) {
    // Help or the version was requested, and has been printed.
    if (error instanceof CommanderError) return error.exitCode;
    throw error;
  }
}

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  process.exit(stdoutLoss(error) === "hangup" ? EXIT_SIGNAL.SIGHUP : (reportLostOutput(error) ?? EXIT_OK));
});
// stderr is optional: a run continues if its reader is gone.
process.stderr.on("error", () => {});

/** Reports output that could not be written. Returns the exit code, or undefined if the loss is not an error. */
function reportLostOutput(error: NodeJS.ErrnoException): number | undefined {
  const lost = stdoutLoss(error);
  if (typeof lost === "string") return undefined;
  printError(lost);
  return EXIT_CODE[lost.code];
}

/**
 * Exits once stdout and stderr are flushed. It does not wait for the event loop to empty: an abandoned tool may still
 * hold a timer or a socket. An earlier error takes precedence over lost output.
 */
function leave(code: number): void {
  process.stdout.write("", () => {
    const { errored } = process.stdout;
    const exit = code === EXIT_OK && errored ? (reportLostOutput(errored) ?? code) : code;
    process.stderr.write("", () => process.exit(exit));
  });
}

main(process.argv.slice(2)).then(leave, (error: unknown) => {
  printError(error);
  leave(EXIT_CODE[toControlError(error).code]);
});
