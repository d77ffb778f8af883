// `belay run`: its options.
import { Command, Option } from "commander";
import { act } from "../../shared/action.ts";
import { collected, withConnectionOptions, withJson } from "../../shared/connection-options.ts";
import { withExamples } from "../../shared/examples.ts";
import { withAgent } from "../../shared/server/agent-options.ts";

const EXITS = `
Exit codes: 0 completed (with --detach: accepted), 20 failed, 21 cancelled, 22 lost, 19 the server was gone for longer
than --patience, so that the outcome is not known; a prompt that was refused: the code of the refusal.
Ctrl-C cancels the run and waits for its outcome; a second one leaves at once (130).`;

export function runCommand(): Command {
  const command = new Command("run")
    .description("sends a prompt, shows the answer as it comes, and leaves with how it ended")
    .argument("[prompt]", "what to do; from stdin if it is - or left out in a pipe")
    .addOption(new Option("--session <id>", "in this session, or the beginning of its id").conflicts("new"))
    .option("--new", "in a new session (the default)")
    .addOption(new Option("--title <text>", "of the new session").conflicts("session"))
    .addOption(new Option("--cwd <dir>", "where the new session works (default: the workspace)").conflicts("session"))
    .option("--key <key>", "the same prompt with the same key again is the same run, not a second one")
    .option("--file <file>", "goes with the prompt; may be given several times", collected)
    .addOption(new Option("--delivery <how>", "into a busy session").choices(["queue", "steer", "interrupt", "reject"]))
    .option("--detach", "leaves once the prompt is accepted; needs a server")
    .option("--timeout <ms>", "cancels the run after this long")
    .option("--patience <ms>", "how long a server may be gone before this gives up", "60000")
    .option("--local", "in this program, on the home's own store, whether or not a server runs")
    .action((prompt, flags) => act(async () => (await import("./run-start.ts")).startRun(prompt, flags)));
  withAgent(command, "Without a server (a server has its own):");
  return withExamples(
    withJson(withConnectionOptions(command), "events as JSON lines on stdout, the outcome last").addHelpText(
      "after",
      EXITS,
    ),
    [
      ['belay run "count to 30"', "the answer on stdout, what happens besides on stderr"],
      ['belay run "review this" --file change.diff', "a file goes with the prompt"],
      ["belay run - < prompt.md", "the prompt from a file"],
      ['belay run --session ses_7f3 --delivery steer "only the tests"', "said into what is going on"],
      ['belay run --detach "tidy up"', "prints the run's id and leaves"],
    ],
  );
}
