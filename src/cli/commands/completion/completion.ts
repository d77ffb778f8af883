// Generates completion scripts for commands, options and ids from the commands themselves, so that they always agree.
import type { Command, Option } from "commander";
import { isHidden } from "../../shared/usage-error.ts";

export type Shell = "bash" | "zsh" | "fish";

export function completionScript(program: Command, shell: Shell): string {
  const commands = completionsOf(program);
  switch (shell) {
    case "bash":
      return bash(program, commands);
    case "zsh":
      return zsh(program, commands);
    case "fish":
      return fish(program, commands);
  }
}

/** The kind of value that an option or argument takes. */
type Value = { readonly kind: "ids"; readonly of: string } | { readonly kind: "file" | "choice" | "none" | "text" };

interface OptionCompletion {
  readonly flag: string;
  readonly about: string;
  readonly value: Value;
}

/** The completions of a command. */
interface CommandCompletion {
  readonly name: string;
  readonly about: string;
  readonly options: readonly OptionCompletion[];
  /** Values of its first argument: its subcommands, or choices. */
  readonly choices: readonly string[];
  readonly argument: Value;
}

function completionsOf(program: Command): readonly CommandCompletion[] {
  return program.commands
    .filter((one) => !isHidden(one))
    .map((command) => {
      const [first] = command.registeredArguments;
      const inner = command.commands.map((one) => one.name());
      // Includes the options of subcommands: one list is good enough.
      const options = [command, ...command.commands].flatMap((one) => one.options).filter(({ hidden }) => !hidden);
      return {
        name: command.name(),
        about: shortDescription(command.description()),
        options: unique([...options.flatMap(optionCompletion), HELP]),
        choices: inner.length > 0 ? inner : (first?.argChoices ?? topics(command, program)),
        argument: first === undefined ? { kind: "none" } : valueKindOf(first.name()),
      };
    });
}

const HELP: OptionCompletion = { flag: "--help", about: "this", value: { kind: "none" } };

const unique = (options: readonly OptionCompletion[]): readonly OptionCompletion[] => [
  ...new Map(options.map((one) => [one.flag, one])).values(),
];

/** The argument of `belay help` is the name of a command. */
const topics = (command: Command, program: Command): readonly string[] =>
  command.name() === "help" ? program.commands.filter((one) => !isHidden(one)).map((one) => one.name()) : [];

function optionCompletion({ long, description, flags, required, optional }: Option): readonly OptionCompletion[] {
  if (long === undefined) return [];
  const [, name = ""] = /[<[]([^>\]]+)[>\]]/.exec(flags) ?? [];
  return [
    {
      flag: long,
      about: shortDescription(description),
      value: required || optional ? valueKindOf(name) : { kind: "none" },
    },
  ];
}

/** The kind of value, by the name of the argument. */
function valueKindOf(name: string): Value {
  if (name === "id") return { kind: "ids", of: "" };
  if (["session", "run", "call", "process", "question"].includes(name)) return { kind: "ids", of: name };
  return { kind: ["file", "dir", "path"].includes(name) ? "file" : "text" };
}

/** The first clause of a description, without characters that end a quoted string in one of the three shells. */
const shortDescription = (text: string): string =>
  (text.split(/[;:]/)[0] ?? "").replaceAll(/[^\p{L}\p{N} ,.()-]/gu, "");

const idsCommand = (program: string, of: string): string => `${program} complete-ids ${of}`.trimEnd();

function bash(program: Command, commands: readonly CommandCompletion[]): string {
  const name = program.name();
  const values = commands.flatMap(({ name: command, options }) =>
    options.flatMap(({ flag, value }) =>
      value.kind === "none" ? [] : [`    "${command} ${flag}") ${bashValue(value)} ;;`],
    ),
  );
  const followers = commands.map(({ name: command, options, choices, argument }) => {
    const flags = options.map(({ flag }) => flag).join(" ");
    const first = choices.length > 0 ? `_belay_words "${choices.join(" ")}"` : bashValue(argument);
    return `    ${command}) if [[ $cur == -* ]]; then _belay_words "${flags}"; else ${first}; fi ;;`;
  });
  return `# bash completion for ${name}. Made by: ${name} completion bash
_belay_words() { COMPREPLY=($(compgen -W "$1" -- "$cur")); }
_belay_ids() { _belay_words "$("\${COMP_WORDS[0]}" complete-ids "$@" 2>/dev/null </dev/null)"; }
_belay_files() { compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$cur")); }
_belay() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD - 1]}" command="" at
  COMPREPLY=()
  for ((at = 1; at < COMP_CWORD; at++)); do
    if [[ \${COMP_WORDS[at]} != -* ]]; then command="\${COMP_WORDS[at]}"; break; fi
  done
  case "$command $prev" in
${values.map((line) => line.replace(/ ;;$/, "; return ;;")).join("\n")}
  esac
  case "$command" in
${followers.join("\n")}
    "") _belay_words "${commands.map((one) => one.name).join(" ")} --help --version" ;;
  esac
}
complete -F _belay ${name}`;
}

function bashValue(value: Value): string {
  if (value.kind === "ids") return `_belay_ids ${value.of}`.trimEnd();
  return value.kind === "file" ? "_belay_files" : ":";
}

function zsh(program: Command, commands: readonly CommandCompletion[]): string {
  const name = program.name();
  const entries = commands.map((one) => `    '${one.name}:${one.about}'`).join("\n");
  const values = commands.flatMap(({ name: command, options }) =>
    options.flatMap(({ flag, value }) =>
      value.kind === "none" ? [] : [`    '${command} ${flag}') ${zshValue(value)}; return ;;`],
    ),
  );
  const followers = commands.map(({ name: command, options, choices, argument }) => {
    const flags = options.map(({ flag, about }) => `'${flag}:${about}'`).join(" ");
    const first = choices.length > 0 ? `compadd -- ${choices.join(" ")}` : zshValue(argument);
    return `    ${command})
      if [[ $PREFIX == -* ]]; then known=(${flags}); _describe option known; else ${first}; fi ;;`;
  });
  return `#compdef ${name}
# zsh completion for ${name}. Made by: ${name} completion zsh
_belay_ids() { local -a ids; ids=(\${(f)"$("\${words[1]}" complete-ids "$@" 2>/dev/null </dev/null)"}); compadd -a ids }
_belay() {
  local command="" word
  local -a commands known
  commands=(
${entries}
  )
  for word in "\${(@)words[2,CURRENT-1]}"; do
    if [[ $word != -* ]]; then command=$word; break; fi
  done
  case "$command \${words[CURRENT-1]}" in
${values.join("\n")}
  esac
  case "$command" in
${followers.join("\n")}
    '') _describe command commands ;;
  esac
}
if [[ $funcstack[1] == _belay ]]; then _belay "$@"; else compdef _belay ${name}; fi`;
}

function zshValue(value: Value): string {
  if (value.kind === "ids") return `_belay_ids ${value.of}`.trimEnd();
  return value.kind === "file" ? "_files" : ":";
}

function fish(program: Command, commands: readonly CommandCompletion[]): string {
  const name = program.name();
  const lines = commands.flatMap(({ name: command, about, options, choices, argument }) => {
    const seen = `-n '__fish_seen_subcommand_from ${command}'`;
    const first = choices.length > 0 ? ` -a '${choices.join(" ")}'` : fishValue(name, argument);
    return [
      `complete -c ${name} -n __fish_use_subcommand -a ${command} -d '${about}'`,
      ...(first === "" ? [] : [`complete -c ${name} ${seen}${first}`]),
      ...options.map(({ flag, about: what, value }) => {
        const taken = value.kind === "none" ? "" : ` -r${fishValue(name, value)}`;
        return `complete -c ${name} ${seen} -l ${flag.slice(2)} -d '${what}'${taken}`;
      }),
    ];
  });
  return [`# fish completion for ${name}. Made by: ${name} completion fish`, `complete -c ${name} -f`, ...lines].join(
    "\n",
  );
}

function fishValue(program: string, value: Value): string {
  if (value.kind === "ids") return ` -a '(${idsCommand(program, value.of)} 2>/dev/null </dev/null)'`;
  return value.kind === "file" ? " -F" : "";
}
