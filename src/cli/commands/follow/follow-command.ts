// `belay follow`: its options.
import { Command } from "commander";
import { act } from "../../shared/action.ts";
import { withConnectionOptions, withJson } from "../../shared/connection-options.ts";
import { withExamples } from "../../shared/examples.ts";
import type { FollowFlags } from "./follow.ts";

export function followCommand(): Command {
  const command = new Command("follow")
    .description("what happens, as it happens; Ctrl-C leaves and cancels nothing")
    .argument("[id]", "a session, or a run to its outcome; without it, every session")
    .option("--after <position>", "of a session: from this position of its log on, 0 being all (default: from now on)")
    .action((id: string | undefined, flags: FollowFlags) =>
      act(async () => (await import("./follow.ts")).runFollow(id, flags)),
    );
  return withExamples(withJson(withConnectionOptions(command), "lines of JSON on stdout, one for each event"), [
    ["belay follow run_01jd8v", "from its acceptance to its outcome"],
    ["belay follow ses_01jd8v --after 0", "everything, and then what comes"],
    ["belay follow --json | jq .event.type", "every session, for a script"],
  ]);
}
