// `belay runs`: its options.
import { Command } from "commander";
import { act } from "../../shared/action.ts";
import { withConnectionOptions, withJson } from "../../shared/connection-options.ts";
import { withExamples } from "../../shared/examples.ts";
import type { RunsFlags } from "./runs.ts";

export function runsCommand(): Command {
  const command = new Command("runs")
    .description("the runs of a session, newest first, and how they ended")
    .argument("[session]", "its id or the beginning of it; without it, the runs of the newest sessions")
    .option("--limit <number>", "at most so many, 1 to 1000 (default 100)")
    .option("--before <position>", "of a session: those that were accepted before this position of its log")
    .action((session: string | undefined, flags: RunsFlags) =>
      act(async () => (await import("./runs.ts")).printRuns(session, flags)),
    );
  return withExamples(withJson(withConnectionOptions(command)), [
    ["belay runs", "what has been going on lately"],
    ["belay runs ses_01jd8v --limit 5", "the last five of one session"],
  ]);
}
