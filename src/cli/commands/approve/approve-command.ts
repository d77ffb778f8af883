// `belay approve`: its options.
import { Command } from "commander";
import { act } from "../../shared/action.ts";
import { withConnectionOptions, withJson } from "../../shared/connection-options.ts";
import { withExamples } from "../../shared/examples.ts";
import type { ApproveFlags } from "./approve.ts";

export function approveCommand(): Command {
  const command = new Command("approve")
    .description("shows exactly what a call would do, and lets it go on; without an id, what is asked")
    .argument("[question]", "its id, or the beginning of it")
    .option("--remember", "for all calls of its scope in this session")
    .option("--note <text>", "kept in the log")
    .option("--by <name>", "who says so")
    .option("--digest <digest>", "that of the bytes you have seen: other bytes are not approved")
    .option("-y, --yes", "do not ask again at a terminal, and approve unseen without one")
    .action((question: string | undefined, flags: ApproveFlags) =>
      act(async () => (await import("./approve.ts")).runApprove("allow", question, flags)),
    );
  return withExamples(withJson(withConnectionOptions(command)), [
    ["belay approve", "what is asked, and by whom"],
    ["belay approve ask_01jd8v.1", "shows it, and asks whether you mean it"],
    ["belay approve ask_01jd8v.1 --remember", "and is not asked again in this session"],
  ]);
}
