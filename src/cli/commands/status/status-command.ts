// `belay status`: its options.
import { Command } from "commander";
import { act } from "../../shared/action.ts";
import { type ConnectionOptions, withConnectionOptions, withJson } from "../../shared/connection-options.ts";
import { withExamples } from "../../shared/examples.ts";

export function statusCommand(): Command {
  const command = new Command("status")
    .description("Show the size of the store, running work, memory, event-loop delay and open files")
    .action((flags: ConnectionOptions & { readonly json?: true }) =>
      act(async () => (await import("./status.ts")).runStatus(flags)),
    );
  return withExamples(withJson(withConnectionOptions(command)), [
    ["belay status", "of the server"],
    ["belay status --store belay.db", "of a file that no server has open"],
  ]);
}
