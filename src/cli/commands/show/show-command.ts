// `belay show`: its options.
import { Command } from "commander";
import { act } from "../../shared/action.ts";
import { withConnectionOptions, withJson } from "../../shared/connection-options.ts";
import { withExamples } from "../../shared/examples.ts";
import type { ShowFlags } from "./show.ts";

export function showCommand(): Command {
  const command = new Command("show")
    .description("show a run (prompt, times, outcome, usage, calls, answer) or one call")
    .argument("<id>", "a run or a call, or any unique prefix of its id")
    .option("--session <id>", "the id is that of a call in this session: ours, or the model's own")
    .action((id: string, flags: ShowFlags) => act(async () => (await import("./show.ts")).show(id, flags)));
  return withExamples(withJson(withConnectionOptions(command)), [
    ["belay show run_7f3", "a run and its answer"],
    ["belay show call_7f3.1", "one call: its tool, input, state and result"],
  ]);
}
