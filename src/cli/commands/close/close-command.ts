// `belay close`: its options.
import { Command } from "commander";
import { act } from "../../shared/action.ts";
import { withConnectionOptions, withJson } from "../../shared/connection-options.ts";
import { withExamples } from "../../shared/examples.ts";
import type { CloseFlags } from "./close.ts";

export function closeCommand(): Command {
  const command = new Command("close")
    .description("End a session: stop everything in it, keep its log, accept nothing more")
    .argument("<session>", "its id, or a unique prefix of it")
    .option("--reason <text>", "why: kept in the log")
    .action((session: string, flags: CloseFlags) =>
      act(async () => (await import("./close.ts")).runClose(session, flags)),
    );
  return withExamples(withJson(withConnectionOptions(command), "the receipt as one JSON document on stdout"), [
    ["belay close ses_01jd8v", "what it has said can still be read"],
  ]);
}
