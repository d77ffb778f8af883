// `belay sessions`: its options.
import { Command, Option } from "commander";
import { act } from "../../shared/action.ts";
import { withConnectionOptions, withJson } from "../../shared/connection-options.ts";
import { withExamples } from "../../shared/examples.ts";
import type { SessionsFlags } from "./sessions.ts";

export function sessionsCommand(): Command {
  const command = new Command("sessions")
    .description("the sessions there are, newest first")
    .option("--limit <number>", "at most so many, 1 to 1000 (default 100)")
    .option("--before <session>", "those that were created before this one")
    .addOption(
      new Option("--after <session>", "those that were created after this one, oldest first").conflicts("before"),
    )
    .action((flags: SessionsFlags) => act(async () => (await import("./sessions.ts")).printSessions(flags)));
  return withExamples(withJson(withConnectionOptions(command)), [
    ["belay sessions", "the newest hundred"],
    ["belay sessions --before ses_01jd8v", "the hundred before them"],
    ["belay sessions --store belay.db", "those in a file that no server has open"],
  ]);
}
