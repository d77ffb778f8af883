// Asks the user at this terminal, one question at a time.
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../../../ports/clock.ts";
import { HeldTerminal } from "./held-terminal.ts";

/** Holds the terminal until it is released. Questions are on stderr: stdout has only the text of the run. */
export interface TerminalPrompt {
  readonly ask: HeldTerminal["ask"];
  readonly interject: HeldTerminal["interject"];
  release(): void;
}

export function atTerminal(clock: Clock): TerminalPrompt {
  const held = new HeldTerminal({
    ...{ input: process.stdin, output: process.stderr, clock },
    afterReads: async () => {
      // Twice: the first turn may end before pending input is read.
      await nextTurn();
      await nextTurn();
    },
    // A terminal in raw mode sends no signals, so this program sends them to itself.
    signal: (signal) => process.kill(process.pid, signal),
  });
  const resumed = (): void => held.resumed();
  process.on("SIGCONT", resumed);
  const resized = (): void => held.resized();
  process.stderr.on("resize", resized);
  return {
    ask: (ask) => held.ask(ask),
    interject: (line) => held.interject(line),
    release: () => {
      process.removeListener("SIGCONT", resumed);
      process.stderr.off("resize", resized);
      held.release();
    },
  };
}

/** Whether a user can be asked here. */
export const isInteractive = (): boolean =>
  process.stdin.isTTY === true && process.stderr.isTTY === true && process.env.TERM !== "dumb";
