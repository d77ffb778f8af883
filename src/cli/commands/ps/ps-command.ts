// `belay ps`: its options.
import { Command } from "commander";
import { act } from "../../shared/action.ts";
import { type ConnectionOptions, withConnectionOptions, withJson } from "../../shared/connection-options.ts";
import { withExamples } from "../../shared/examples.ts";

export function psCommand(): Command {
  const command = new Command("ps")
    .description("the runs, calls and processes that are going on, and what they wait for")
    .action((flags: ConnectionOptions & { readonly json?: true }) =>
      act(async () => (await import("./ps.ts")).runPs(flags)),
    );
  return withExamples(withJson(withConnectionOptions(command)), [
    ["belay ps", "one line for each; any of the ids can be cancelled"],
    ["belay ps --json", "the explanation of each busy session"],
  ]);
}
