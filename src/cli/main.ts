// The command line: finds the command, carries it out, and leaves an exit code.
import { CommanderError } from "commander";
import { toControlError } from "../core/control-error.ts";
import { EXIT_CODE, EXIT_OK } from "./exit-code.ts";
import { carryOut, makeProgram } from "./program.ts";
import { printError } from "./terminal.ts";

async function main(words: readonly string[]): Promise<number> {
  try {
    await carryOut(makeProgram(), words);
    return Number(process.exitCode ?? EXIT_OK);
  } catch (error) {
    // Help or the version was asked for, and has been said.
    if (error instanceof CommanderError) return error.exitCode;
    throw error;
  }
}

// Whoever reads our output may stop reading (`belay demo | head`). That is theirs to decide, and no error.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(EXIT_OK);
    throw error;
  });
}

/** Leaves once everything is said. Not by itself: a tool that was given up may still hold a timer or a socket. */
function leave(code: number): void {
  process.stdout.write("", () => process.stderr.write("", () => process.exit(code)));
}

main(process.argv.slice(2)).then(leave, (error: unknown) => {
  printError(error);
  leave(EXIT_CODE[toControlError(error).code]);
});
