// Turns the parser's errors into ours: what is wrong with the arguments, and what to try.
import type { Command, CommanderError } from "commander";
import { ControlError } from "../../core/errors.ts";
import { suggest } from "../../core/suggest.ts";
import { exampleOf, fullName } from "./examples.ts";
import { plainLine } from "./format/plain-text.ts";

const TYPED_CHARS_MAX = 40;

/** The parser's error as a ControlError. `command` is the one whose arguments were wrong. */
export function usageError(command: Command, { code, message }: CommanderError): ControlError {
  const [, quoted = ""] = /'([^']*)'/.exec(message) ?? [];
  const tryThis = `Try: ${exampleOf(command)}`;
  switch (code) {
    case "commander.unknownCommand":
      return unknownCommand(command, command.args[0] ?? quoted);
    case "commander.unknownOption":
      return unknownOption(command, quoted);
    case "commander.missingArgument":
      return usage(`${shortName(command)} needs to know which ${quoted}.`, tryThis);
    case "commander.excessArguments":
      return usage(excess(command), tryThis);
    case "commander.help":
      return usage(`${shortName(command)} needs a command: ${namesIn(command).join(", ")}.`, tryThis);
    case "commander.invalidArgument":
      return invalidValue(command, message);
    case "commander.optionMissingArgument":
      return usage(`${quoted.replace(/ .*/, "")} needs a value: ${quoted}.`, helpOf(command));
    default:
      return usage(sentence(message), helpOf(command));
  }
}

const WRONG_OPTION = /^error: option '([^' ]*)[^']*' argument '(.*)' is invalid.*Allowed choices are (.*)\.$/s;
const WRONG_ARGUMENT = /^error: command-argument value '(.*)' is invalid.*Allowed choices are (.*)\.$/s;

/** A value that is not one of the choices. */
function invalidValue(command: Command, message: string): ControlError {
  const option = WRONG_OPTION.exec(message);
  const [, typed = "", choices] = option?.slice(1) ?? WRONG_ARGUMENT.exec(message) ?? [];
  if (choices === undefined) return usage(sentence(message), helpOf(command));
  const meant = suggest(typed, choices.split(", "));
  const hint = meant === undefined ? `There are: ${choices}.` : `Did you mean ${meant}? There are: ${choices}.`;
  return usage(`${option?.[1] ?? shortName(command)} cannot be "${shown(typed)}".`, hint);
}

function excess(command: Command): string {
  const { args, registeredArguments: known } = command;
  const [first, ...more] = known;
  const extra = shown(args[known.length] ?? "");
  if (first === undefined) return `${shortName(command)} takes no ${extra}.`;
  if (more.length === 0)
    return `${shortName(command)} takes one ${first.name()} at a time, and "${extra}" is one more.`;
  return `${shortName(command)} takes ${known.map((one) => one.name()).join(" and ")}, and "${extra}" is one more.`;
}

export function unknownCommand(parent: Command, typed: string): ControlError {
  const meant = suggest(typed.replace(/^-+/, ""), namesIn(parent));
  const hint = meant === undefined ? helpOf(parent) : `Did you mean: ${fullName(parent)} ${meant}?`;
  return usage(`There is no ${typed.startsWith("-") ? "option" : "command"} "${shown(typed)}".`, hint);
}

/** An option before the command: either an option of a command, or a mistyped command. */
export function optionFirst(program: Command, typed: string): ControlError {
  const flag = shown(typed.replace(/=.*/, ""));
  const isOne = program.commands.some(({ options }) => options.some(({ long }) => long === flag));
  if (!isOne) return unknownCommand(program, typed);
  return usage(`${flag} comes after a command.`, `As in: belay ps ${flag} …; belay --help lists the commands.`);
}

function unknownOption(command: Command, flag: string): ControlError {
  if (command.parent === null) return optionFirst(command, flag);
  const typed = flag.replace(/=.*/, "");
  const known = command.options.flatMap(({ long }) => (long === undefined ? [] : [long.slice(2)]));
  const meant = suggest(typed.replace(/^-+/, ""), [...known, "help"]);
  return usage(
    `There is no option ${shown(typed)}.`,
    meant === undefined ? helpOf(command) : `Did you mean --${meant}?`,
  );
}

const namesIn = (parent: Command): readonly string[] =>
  parent.commands.flatMap((one) => (isHidden(one) ? [] : [one.name(), ...one.aliases()]));

/** Commands that only scripts call are not suggested to users. */
export const isHidden = (command: Command): boolean =>
  command.parent !== null && !command.parent.createHelp().visibleCommands(command.parent).includes(command);

const shortName = (command: Command): string => fullName(command).replace(/^belay /, "");
const helpOf = (command: Command): string => `${fullName(command)} --help lists what there is.`;
const shown = (typed: string): string => plainLine(typed, TYPED_CHARS_MAX);

function sentence(message: string): string {
  const line = plainLine(message.replace(/^error: /, ""), 200);
  return `${line.charAt(0).toUpperCase()}${line.slice(1)}${line.endsWith(".") ? "" : "."}`;
}

const usage = (message: string, hint: string): ControlError => new ControlError("invalid", message, { hint });
