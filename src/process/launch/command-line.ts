// Turns a requested command into the arguments of a program, and into a line for display.
import { problemOfCommand } from "../../core/argument.ts";
import { ControlError } from "../../core/errors.ts";
import type { CommandLine } from "../../ports/spawner.ts";
import { DESCRIPTION_CHARS_MAX } from "../limits.ts";

/** The program and its arguments. Throws `invalid` if no program can be started with them. */
export function toArguments(command: CommandLine): readonly [string, ...string[]] {
  const args = typeof command === "string" ? ofText(command) : ofList(command);
  // The engine has checked this already, but not every caller is the engine.
  const problem = problemOfCommand(command);
  if (problem !== undefined) throw invalid(problem.message, problem.hint);
  return args;
}

/** The command as one line for display: its shell syntax, bounded, without characters that could harm a terminal. */
export function describe(command: CommandLine): string {
  const text = typeof command === "string" ? command.trim() : quote(command);
  // Cut first: escaping text that is cut off would be wasted work.
  const chars = [...text.slice(0, (DESCRIPTION_CHARS_MAX + 1) * 2)];
  const line = chars.slice(0, DESCRIPTION_CHARS_MAX).join("").replace(UNSAFE, visible);
  const shown = [...line].slice(0, DESCRIPTION_CHARS_MAX).join("");
  return shown.length < line.length || chars.length > DESCRIPTION_CHARS_MAX ? `${shown}…` : shown;
}

/** Quotes the arguments so that `sh` parses them back unchanged. */
export function quote(args: readonly string[]): string {
  return args.map((arg) => (PLAIN.test(arg) ? arg : `'${arg.replaceAll("'", `'\\''`)}'`)).join(" ");
}

/** Text without special meaning to any shell. Some shells expand a leading `~` or `=`. */
const PLAIN = /^[A-Za-z0-9_@%+:,./-][A-Za-z0-9_@%+=:,./-]*$/;

/** Control characters, line ends of every kind, bidirectional controls, and lone surrogates. */
const UNSAFE = /[\p{Cc}\p{Cs}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu;

const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

const visible = (char: string): string =>
  SHORT[char] ?? `\\u${(char.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`;

function ofText(text: string): readonly [string, ...string[]] {
  if (text.trim() === "") throw invalid("The command is empty.");
  // The shell would parse such a text as its own options.
  return /^[-+]/.test(text) ? ["/bin/sh", "-c", "--", text] : ["/bin/sh", "-c", text];
}

function ofList(command: readonly [string, ...string[]]): readonly [string, ...string[]] {
  // The type guarantees this, but data from the network has no type.
  const given: unknown = command;
  if (!Array.isArray(given)) throw invalid("A command must be a string, or a list of a program and its arguments.");
  if (given.length === 0 || given[0] === "") throw invalid("The command names no program.");
  const wrong = given.findIndex((arg) => typeof arg !== "string");
  if (wrong >= 0) throw invalid(`Argument ${wrong} of the command must be a string.`);
  return command;
}

const invalid = (message: string, hint?: string): ControlError =>
  new ControlError("invalid", message, hint === undefined ? {} : { hint });
