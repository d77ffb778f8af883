// `belay acp-front`: its options.
import { Command, Option } from "commander";
import { act } from "../../shared/action.ts";
import { withExamples } from "../../shared/examples.ts";
import { AT_END } from "../acp/acp-command.ts";

const MORE = `
The agent is any program that speaks ACP on stdin and stdout. The editor gets what the agent does not have by itself: a
queue, a cancel that always ends it (asked first, then its processes), approvals, and a log that outlives it.
Each command has its own home, fronts/<digest> in the home; stderr says which. Find its runs with belay ps --home DIR.`;

export function acpFrontCommand(): Command {
  const command = new Command("acp-front")
    .description("another agent that speaks ACP, under Belay, for editors")
    .argument("<command...>", "the program of the agent and its words, after two dashes")
    .option("--home <dir>", "where Belay keeps its things (else BELAY_HOME)")
    .addOption(new Option("--at-end <what>", AT_END).choices(["cancel", "keep"]).default("cancel"))
    .addOption(
      new Option("--require <tier>", "refuses to begin unless processes are held at least this surely").choices([
        ...["namespace", "cgroup", "anchor", "group"],
      ]),
    )
    .option("--config <file>", "belay.config.ts, .js, .mjs or .json (default: the one here, if there is one)")
    .option("--no-config", "reads none, also if there is one here")
    .action((words, flags) => act(async () => (await import("./acp-front.ts")).startFront(words, flags)));
  return withExamples(command.addHelpText("after", MORE), [
    ["belay acp-front -- some-agent acp", "that agent, with a stop button that works"],
    ["belay acp-front --at-end keep -- some-agent", "its runs outlive the editor"],
  ]);
}
