// `belay cancel`: its options.
import { Command } from "commander";
import { act } from "../../shared/action.ts";
import { withConnectionOptions, withJson } from "../../shared/connection-options.ts";
import { withExamples } from "../../shared/examples.ts";
import type { CancelFlags } from "./cancel.ts";

export function cancelCommand(): Command {
  const command = new Command("cancel")
    .description("stops a session, run, call, process or question, and says what that meant")
    .argument("<id>", "its id, or as much of its beginning as tells it from others")
    .option("--reason <text>", "why: kept in the log, and told to the model")
    .option("--wait [ms]", "wait for its end, by default up to 30000 ms; 0 does not wait")
    .option("--no-remind", "of a call: do not remind the model of it at its next turn")
    .option("--keep-background", "of a session: keep its background processes running")
    .option("--session <id>", "the id is that of a call in this session: ours, or the model's own")
    .action((id: string, flags: CancelFlags) => act(async () => (await import("./cancel.ts")).runCancel(id, flags)));
  return withExamples(withJson(withConnectionOptions(command), "the receipt as one JSON document on stdout"), [
    ["belay cancel run_01jd8v", "the run whose id begins so, with all it owns"],
    ["belay cancel call_01jd8v.3 --reason 'wrong folder'", "one call; its run continues"],
    ["belay cancel ses_01jd8v --wait", "the session; says how each of its runs ended"],
  ]);
}
