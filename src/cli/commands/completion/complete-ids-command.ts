// `belay complete-ids KIND...`: prints ids for shell completion. Hidden: only completion scripts call it.
import { Command } from "commander";
import { act } from "../../shared/action.ts";
import { type ConnectionOptions, withConnectionOptions } from "../../shared/connection-options.ts";

export function completeIdsCommand(): Command {
  const command = new Command("complete-ids")
    .description("for completion scripts: the ids that are going on")
    .argument("[kinds...]", "session, run, call, process, question (default: all)")
    .action((kinds: readonly string[], flags: ConnectionOptions) =>
      act(async () => (await import("./complete-ids.ts")).completeIds(kinds, flags)),
    );
  return withConnectionOptions(command);
}
