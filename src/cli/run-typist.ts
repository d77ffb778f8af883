// Somebody at the keyboard, asked one thing at a time.
import { createInterface } from "node:readline";

/** Asks, and answers with the line that was typed. Undefined: taken back, or whoever was there has gone. */
export type Typist = (question: string, signal: AbortSignal) => Promise<string | undefined>;

/**
 * Opened for each question anew: what was typed before a question was seen answers nothing. On stderr, so that stdout
 * carries the words of the run alone.
 */
export const atTerminal: Typist = (question, signal) =>
  new Promise((resolve) => {
    const reader = createInterface({ input: process.stdin, output: process.stderr, terminal: true });
    const leave = (line?: string): void => {
      signal.removeEventListener("abort", takenBack);
      resolve(line);
      reader.close();
    };
    const takenBack = (): void => leave();
    // A terminal that is read key by key sends no signal for Ctrl-C. Sent to ourselves, it is heard like any other.
    reader.on("SIGINT", () => process.kill(process.pid, "SIGINT"));
    reader.on("close", () => leave());
    if (signal.aborted) leave();
    else {
      signal.addEventListener("abort", takenBack, { once: true });
      reader.question(question, leave);
    }
  });

/** Whether somebody can be asked here. */
export const hasTypist = (): boolean =>
  process.stdin.isTTY === true && process.stderr.isTTY === true && process.env.TERM !== "dumb";
