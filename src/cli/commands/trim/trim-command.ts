// `belay trim`: its options.
import { Command, Option } from "commander";
import { act } from "../../shared/action.ts";
import { withConnectionOptions, withJson } from "../../shared/connection-options.ts";
import { withExamples } from "../../shared/examples.ts";
import type { TrimFlags } from "./trim.ts";

export function trimCommand(): Command {
  const command = new Command("trim")
    .description("Remove the oldest events of a session permanently; never those that the model still needs")
    .argument("<session>", "its id, or a unique prefix of it")
    .addOption(new Option("--before <seq>", "events before this position of the log").conflicts("keep"))
    .option("--keep <events>", "all but so many of the newest events")
    .action((session: string, flags: TrimFlags) =>
      act(async () => (await import("./trim.ts")).runTrim(session, flags)),
    );
  return withExamples(withJson(withConnectionOptions(command)), [
    ["belay trim ses_01jd8v --keep 1000", "says how many were removed, and what kept it from removing more"],
    ["belay trim ses_01jd8v --before 5000", "up to a position of the log"],
  ]);
}
