// Examples of a command: shown by its --help, and proposed to whoever has got its words wrong.
import type { Command } from "commander";

/** What is typed, and what that does. The first one is what a person should try. */
export type Example = readonly [typed: string, meaning: string];

const KNOWN = new WeakMap<Command, readonly Example[]>();

export function withExamples(command: Command, examples: readonly Example[]): Command {
  KNOWN.set(command, examples);
  const width = Math.max(...examples.map(([typed]) => typed.length));
  const lines = examples.map(([typed, meaning]) => `  ${typed.padEnd(width)}  ${meaning}`);
  return command.addHelpText("after", `\nExamples:\n${lines.join("\n")}`);
}

/** What to try instead: the first example, or the help. */
export function exampleOf(command: Command): string {
  return KNOWN.get(command)?.[0]?.[0] ?? `${fullName(command)} --help`;
}

/** `belay token add`: as it is typed. */
export function fullName(command: Command): string {
  return command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`;
}
