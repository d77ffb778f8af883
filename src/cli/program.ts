// All commands of the command line, and the layout of their help. The implementation of a command is loaded on demand:
// `belay --help` loads neither the database nor the engine.
import { type Argument, Command, type Help } from "commander";
import { version } from "../system/version.ts";
import { acpCommand } from "./commands/acp/acp-command.ts";
import { acpFrontCommand } from "./commands/acp-front/acp-front-command.ts";
import { answerCommand } from "./commands/answer/answer-command.ts";
import { approveCommand } from "./commands/approve/approve-command.ts";
import { denyCommand } from "./commands/approve/deny-command.ts";
import { backupCommand } from "./commands/backup/backup-command.ts";
import { bridgeCommand } from "./commands/bridge/bridge-command.ts";
import { cancelCommand } from "./commands/cancel/cancel-command.ts";
import { closeCommand } from "./commands/close/close-command.ts";
import { completeIdsCommand } from "./commands/completion/complete-ids-command.ts";
import { completionCommand } from "./commands/completion/completion-command.ts";
import { deleteCommand } from "./commands/delete/delete-command.ts";
import { demoCommand } from "./commands/demo/demo-command.ts";
import { doctorCommand } from "./commands/doctor/doctor-command.ts";
import { explainCommand } from "./commands/explain/explain-command.ts";
import { followCommand } from "./commands/follow/follow-command.ts";
import { helpCommand } from "./commands/help/help-command.ts";
import { logsCommand } from "./commands/logs/logs-command.ts";
import { modeCommand } from "./commands/mode/mode-command.ts";
import { psCommand } from "./commands/ps/ps-command.ts";
import { queueCommand } from "./commands/queue/queue-command.ts";
import { runCommand } from "./commands/run/run-command.ts";
import { runsCommand } from "./commands/runs/runs-command.ts";
import { serveCommand } from "./commands/serve/serve-command.ts";
import { sessionsCommand } from "./commands/sessions/sessions-command.ts";
import { showCommand } from "./commands/show/show-command.ts";
import { statusCommand } from "./commands/status/status-command.ts";
import { stopAllCommand } from "./commands/stop-all/stop-all-command.ts";
import { tokenCommand } from "./commands/token/token-command.ts";
import { trimCommand } from "./commands/trim/trim-command.ts";
import { trustCommand } from "./commands/trust/trust-command.ts";
import { verifyCommand } from "./commands/verify/verify-command.ts";
import { versionCommand } from "./commands/version/version-command.ts";
import { fullName } from "./shared/examples.ts";
import { exitHelp } from "./shared/exit-help.ts";
import { optionFirst, unknownCommand, usageError } from "./shared/usage-error.ts";

/** In the order of the help. */
const GROUPS: Readonly<Record<string, readonly (() => Command)[]>> = {
  "Begin:": [serveCommand, runCommand, demoCommand, acpCommand, acpFrontCommand, bridgeCommand],
  "Inspect:": [
    psCommand,
    statusCommand,
    sessionsCommand,
    runsCommand,
    followCommand,
    showCommand,
    explainCommand,
    logsCommand,
  ],
  "Stop and steer it:": [
    ...[cancelCommand, stopAllCommand, closeCommand, queueCommand, modeCommand],
    ...[approveCommand, denyCommand, answerCommand],
  ],
  "Look after it:": [
    ...[doctorCommand, verifyCommand, backupCommand, trimCommand, deleteCommand],
    ...[tokenCommand, trustCommand],
  ],
  "And:": [completionCommand, helpCommand, versionCommand],
};

/** Wider than this, a line is hard to read. */
const WIDTH_MAX = 110;

export function makeProgram(): Command {
  const program = new Command("belay")
    .description("Belay: the run-control plane for AI agents. The stop button that always works.")
    .version(version(), "-v, --version", "which Belay this is")
    .helpCommand(false)
    .addHelpText("after", () => `\n${exitHelp()}`);
  for (const [heading, makers] of Object.entries(GROUPS)) {
    for (const make of makers) program.addCommand(make().helpGroup(heading));
  }
  program.addCommand(completeIdsCommand(), { hidden: true });
  prepare(program);
  return program;
}

/** Runs the command in `args`. Without arguments it prints the help, which is not an error. */
export async function runProgram(program: Command, args: readonly string[]): Promise<void> {
  const name = args.find((arg) => !arg.startsWith("-"));
  const known = program.commands.some((one) => one.name() === name || one.aliases().includes(name ?? ""));
  const [first = ""] = args;
  if (name !== undefined && !known) {
    throw first.startsWith("-") ? optionFirst(program, first) : unknownCommand(program, name);
  }
  await program.parseAsync(args.length === 0 ? ["--help"] : args, { from: "user" });
}

/** Applies the same settings to a command and its subcommands. */
function prepare(command: Command): void {
  command
    .helpCommand(false)
    .helpOption("-h, --help", command.parent === null ? "what there is; after a command, all about it" : "this")
    .exitOverride((error) => {
      // Exit code 0: help or the version was printed. Everything else is a usage error.
      throw error.exitCode === 0 ? error : usageError(command, error);
    })
    .configureOutput({ outputError: () => {}, getOutHelpWidth: helpWidth })
    .configureHelp(HELP_FORMAT);
  for (const one of command.commands) prepare(one);
}

const helpWidth = (): number => Math.min(process.stdout.columns || WIDTH_MAX, WIDTH_MAX);

const usageOf = (command: Command): string =>
  [fullName(command), ...command.registeredArguments.map(argumentName)].join(" ");

const argumentName = (argument: Argument): string => {
  const name = `${argument.name().toUpperCase()}${argument.variadic ? "..." : ""}`;
  return argument.required ? name : `[${name}]`;
};

const HELP_FORMAT: Partial<Help> = {
  subcommandTerm: usageOf,
  commandUsage: (command) =>
    command.commands.length > 0 ? `${fullName(command)} COMMAND [options]` : `${usageOf(command)} [options]`,
  argumentTerm: (argument) => argument.name().toUpperCase(),
};
