// Runs a suite as a person would type it, and keeps what it says.
import { spawn } from "node:child_process";
import { ROOT } from "../fixtures/repository.ts";
import type { Figure, Result } from "./figure.ts";
import { thisCommit, thisMachine } from "./machine.ts";

const MINUTE_MS = 60_000;

/** `words`: the name of the npm script and what it is told. */
export async function record(words: readonly [string, ...string[]]): Promise<Figure> {
  const [script, ...flags] = words;
  const commit = thisCommit();
  const startedAt = new Date().toISOString();
  const began = performance.now();
  const { exitCode, output } = await run(["run", "--silent", script, "--", ...flags, "--json"]);
  return {
    command: `npm run ${[script, "--", ...flags, "--json"].join(" ")}`,
    result: lastLine(output),
    ...{ exitCode, startedAt, commit },
    minutes: Math.round((performance.now() - began) / (MINUTE_MS / 10)) / 10,
    machine: thisMachine(),
  };
}

/** A suite's own words with other ones behind them. An option that is given again stands in the command once. */
export function commandWith(own: readonly [string, ...string[]], more: readonly string[]): [string, ...string[]] {
  const again = new Set(more.filter((word) => word.startsWith("--")));
  const [script, ...flags] = own;
  let replaced = false;
  const kept = flags.filter((word) => {
    if (word.startsWith("--")) replaced = again.has(word);
    return !replaced;
  });
  return [script, ...kept, ...more];
}

/** What a suite says in the end. Throws if it has said nothing: then there is no figure. */
export function lastLine(output: string): Result {
  const line = output.trimEnd().split("\n").at(-1) ?? "";
  const said: unknown = line.startsWith("{") ? JSON.parse(line) : undefined;
  if (typeof said !== "object" || said === null || !("suite" in said)) {
    throw new TypeError(`The suite has ended without a result. Its last line is: ${line}`);
  }
  return { ...said };
}

function run(words: readonly string[]): Promise<{ readonly exitCode: number; readonly output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn("npm", words, { cwd: ROOT, stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    child.once("error", reject);
    child.once("close", (code) => resolve({ exitCode: code ?? 1, output }));
  });
}
