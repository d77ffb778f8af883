// How the long suites speak: progress and findings on the error stream, the result as the last line of the output.
import { performance } from "node:perf_hooks";

/** To the error stream: the last line of the output is the result's. */
export function say(line: string): void {
  process.stderr.write(`${process.stderr.isTTY ? "\r\u001b[K" : ""}${line}\n`);
}

/** How often somebody is told of progress who reads a file and not a terminal. */
const PROGRESS_MS = 30_000;
let toldAt = performance.now();

/** Rewritten in place on a terminal; elsewhere a line now and then, so that nobody takes long work for a hang. */
export function progress(line: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${line}`);
  else if (performance.now() - toldAt > PROGRESS_MS) {
    toldAt = performance.now();
    say(line);
  }
}

/** The result, and the exit code: 0 only if everything holds. */
export function conclude(
  result: Readonly<Record<string, unknown>>,
  { json, holds }: { readonly json: boolean; readonly holds: boolean },
): void {
  if (process.stderr.isTTY) process.stderr.write("\n");
  console.log(json ? JSON.stringify(result) : result);
  if (!holds) process.exitCode = 1;
}

/** A whole number given on the command line. */
export function wholeNumber(given: string, name: string): number {
  const number = Number(given);
  if (!Number.isInteger(number) || number < 0) throw new TypeError(`${name} takes a whole number, not ${given}.`);
  return number;
}
