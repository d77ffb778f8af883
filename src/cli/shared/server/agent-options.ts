// The options that select an agent and what it may do: of `serve`, and of commands that run one without a server.
import { type Command, Option } from "commander";

/** As commander returns them. */
export interface AgentFlags {
  readonly model?: string;
  readonly agent?: string;
  readonly tools?: string;
  readonly instructions?: string;
  readonly workspace?: string;
  readonly directories?: string;
  readonly mode?: string;
  readonly modes?: string;
  /** False with --no-config. */
  readonly config?: string | false;
  readonly require?: string;
}

export function withAgent(command: Command, heading: string): Command {
  const options = [
    new Option("--model <name>", "provider/name, as in openai/gpt-5 or anthropic/claude-…; else BELAY_MODEL"),
    new Option("--agent <module>", "your own module that exports `agent`"),
    new Option("--tools <module>", "your own module that exports `tools`, added to the built-in ones"),
    new Option("--instructions <file>", "instructions for the model, added to Belay's own"),
    new Option("--workspace <dir>", "where it works (default: here)"),
    new Option("--directories <which>", "where a session may work: in the workspace (default), or anywhere").choices([
      ...["workspace", "any"],
    ]),
    new Option("--mode <mode>", "ask people first, let it do all by itself, or only read").choices([
      ...["ask", "auto", "read-only"],
    ]),
    new Option("--modes <list>", "the only modes that a session may be set to, with commas (default: all)"),
    new Option("--config <file>", "belay.config.ts, .js, .mjs or .json (default: the one here, if there is one)"),
    new Option("--no-config", "reads none, also if there is one here"),
    new Option("--require <tier>", "refuses to begin unless processes are held at least this surely").choices([
      ...["namespace", "cgroup", "anchor", "group"],
    ]),
  ];
  for (const option of options) command.addOption(option.helpGroup(heading));
  return command;
}
