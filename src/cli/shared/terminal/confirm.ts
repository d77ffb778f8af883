// A yes-or-no question to the user at the terminal. It is printed on stderr, so that stdout has only the result.
import { createInterface } from "node:readline";

/** Whether a user can be asked. Without a terminal a question would wait forever. */
export const isAttended = (): boolean => process.stdin.isTTY === true && process.stderr.isTTY === true;

/** Only an explicit yes counts. Ctrl-C and the end of the input are a no. */
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
