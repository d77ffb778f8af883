// `belay delete`: its options.
import { Command } from "commander";
import { act } from "../../shared/action.ts";
import { withConnectionOptions, withJson } from "../../shared/connection-options.ts";
import { withExamples } from "../../shared/examples.ts";
import type { DeleteFlags } from "./delete.ts";

export function deleteCommand(): Command {
  const command = new Command("delete")
    .description("Delete a session permanently, with its log and the output of its processes")
    .argument("<session>", "its id, or a unique prefix of it")
    .option("--yes", "do not ask for confirmation")
    .action((session: string, flags: DeleteFlags) =>
      act(async () => (await import("./delete.ts")).runDelete(session, flags)),
    );
  return withExamples(withJson(withConnectionOptions(command)), [
    ["belay delete ses_01jd8v", "stops everything in it first; it cannot be restored"],
    ["belay delete ses_01jd8v --yes", "from a script"],
  ]);
}
