// `belay sessions`: the sessions there are.
import { Command } from "commander";
import { act } from "../action.ts";
import { withDoor, withJson } from "../door-options.ts";
import { withExamples } from "../examples.ts";
import type { SessionsFlags } from "../list-sessions.ts";

export function sessionsCommand(): Command {
  const command = new Command("sessions")
    .description("the sessions there are, oldest first")
    .option("--limit <number>", "at most so many, 1 to 1000 (default 100)")
    .option("--after <session>", "those that were created after this one")
    .action((flags: SessionsFlags) => act(async () => (await import("../list-sessions.ts")).listSessions(flags)));
  return withExamples(withJson(withDoor(command)), [
    ["belay sessions", "the first hundred"],
    ["belay sessions --after ses_01jd8v", "the next ones"],
    ["belay sessions --store belay.db", "those in a file that no server has open"],
  ]);
}
