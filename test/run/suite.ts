// How the long suites speak: progress and findings on the error stream, the result as the last line of the output.
import { performance } from "node:perf_hooks";
import { type ParseArgsOptionsConfig, parseArgs } from "node:util";

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

/** What was asked for on the command line. `help` is shown to whoever asks for it; without one, what can be given. */
export function optionsOf<const T extends ParseArgsOptionsConfig>(options: T, help: string = listOf(options)) {
  try {
    const asked = { help: { type: "boolean", default: false }, ...options } as const;
    const { values } = parseArgs<{ options: typeof asked }>({ options: asked });
    if (!("help" in values && values.help)) return values;
    console.log(help);
    return process.exit(0);
  } catch (error) {
    return refuse(`${error instanceof Error ? error.message : error}\n${help}`);
  }
}

function listOf(options: ParseArgsOptionsConfig): string {
  const lines = Object.entries(options).map(([name, { type, multiple, default: usual }]) => {
    const value = type === "boolean" ? "" : ` …${multiple ? ", several times" : ""}`;
    return `  --${name}${value}${typeof usual === "string" ? ` (${usual})` : ""}`;
  });
  return ["It takes:", ...lines].join("\n");
}

/** What was asked for cannot be done: said in words, without the place in the code that noticed. */
export function refuse(message: string): never {
  say(message);
  process.exit(2);
}

/** A whole number given on the command line. */
export function wholeNumber(given: string, name: string): number {
  const number = Number(given);
  if (given.trim() === "" || !Number.isInteger(number) || number < 0) {
    refuse(`${name} takes a whole number, not ${JSON.stringify(given)}.`);
  }
  return number;
}
