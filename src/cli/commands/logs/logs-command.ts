// `belay logs`: its options.
import { Command, Option } from "commander";
import { act } from "../../shared/action.ts";
import { withConnectionOptions, withJson } from "../../shared/connection-options.ts";
import { withExamples } from "../../shared/examples.ts";

export function logsCommand(): Command {
  const command = new Command("logs")
    .description("what a process has said, what happened in a run or session, or who asked for what")
    .argument("[id]", "a process, run or session, or the beginning of its id; without one: the audit trail")
    .option("-f, --follow", "continue as more arrives; Ctrl-C exits and cancels nothing")
    .addOption(new Option("--stream <name>", "of a process").choices(["all", "stdout", "stderr"]).default("all"))
    .option("--limit <n>", "records of the audit trail, the newest ones", "50")
    .action((id, flags) => act(async () => (await import("./logs.ts")).showLogs(id, flags)));
  return withExamples(withJson(withConnectionOptions(command), "JSON lines on stdout, and nothing else there"), [
    ["belay logs", "the last 50 requests to control something: who, what, and what they were told"],
    ["belay logs proc_7f3 --follow", "the output of a process, as it comes"],
    ["belay logs run_7f3", "everything that is recorded of a run"],
  ]);
}
