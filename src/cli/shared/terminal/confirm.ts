// A question to whoever sits at the terminal. It is asked on stderr, so that stdout stays what was asked for.
import { createInterface } from "node:readline";

/** Whether somebody is there to be asked. Nobody is kept waiting for an answer that cannot come. */
export const isAttended = (): boolean => process.stdin.isTTY === true && process.stderr.isTTY === true;

/** Only a clear yes is one. Ctrl-C and the end of the input are a no. */
export function confirm(question: string): Promise<"yes" | "no"> {
  return new Promise((resolve) => {
    const reader = createInterface({ input: process.stdin, output: process.stderr });
    reader.on("SIGINT", () => reader.close());
    reader.on("close", () => resolve("no"));
    reader.question(`${question} [y/N] `, (typed) => {
      resolve(/^\s*y(es)?\s*$/i.test(typed) ? "yes" : "no");
      reader.close();
    });
  });
}
