// The options that say which agent works and what it may do: for `serve`, and for whoever runs one without a server.
import { type Command, Option } from "commander";

/** As commander hands them on. */
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
    new Option("--agent <module>", "a module of your own that exports `agent`"),
    new Option("--tools <module>", "a module of your own that exports `tools`, added to the built-in ones"),
    new Option("--instructions <file>", "what the model is told besides our own words"),
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
