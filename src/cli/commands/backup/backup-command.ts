// `belay backup`: its options.
import { Command } from "commander";
import { act } from "../../shared/action.ts";
import { withJson } from "../../shared/connection-options.ts";
import { withExamples } from "../../shared/examples.ts";

export function backupCommand(): Command {
  const command = new Command("backup")
    .description("Copy a store to a new directory, even while a server uses it, and verify the copy")
    .argument("<file>", "the store; a server may have it open")
    .argument("<directory>", "a directory that does not exist yet")
    .action((file: string, directory: string, flags: { readonly json?: true }) =>
      act(async () => (await import("./backup.ts")).backUp({ file, directory, json: flags.json === true })),
    );
  return withExamples(withJson(command), [
    ["belay backup belay.db /backups/monday", "0: the copy is complete and verified, 1: verify found something"],
  ]);
}
