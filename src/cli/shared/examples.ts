// Examples of a command: shown by its --help, and suggested after a usage error.
import type { Command } from "commander";

/** What to type, and what that does. The first example of a command is the one to try first. */
export type Example = readonly [typed: string, meaning: string];

const KNOWN = new WeakMap<Command, readonly Example[]>();

export function withExamples(command: Command, examples: readonly Example[]): Command {
  KNOWN.set(command, examples);
  const width = Math.max(...examples.map(([typed]) => typed.length));
  const lines = examples.map(([typed, meaning]) => `  ${typed.padEnd(width)}  ${meaning}`);
  return command.addHelpText("after", `\nExamples:\n${lines.join("\n")}`);
}

/** What to suggest after an error: the first example, or the help. */
export function exampleOf(command: Command): string {
  return KNOWN.get(command)?.[0]?.[0] ?? `${fullName(command)} --help`;
}

/** The name as it is typed: `belay token add`. */
export function fullName(command: Command): string {
  return command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`;
}
