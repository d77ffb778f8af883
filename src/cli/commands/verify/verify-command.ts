// `belay verify`: its options.
import { Command } from "commander";
import { act } from "../../shared/action.ts";
import { withJson } from "../../shared/connection-options.ts";
import { withExamples } from "../../shared/examples.ts";

export function verifyCommand(): Command {
  const command = new Command("verify")
    .description("checks every log in a store against Belay's promises; it only reads")
    .argument("<file>", "the store, also while a server has it open")
    .action((file: string, flags: { readonly json?: true }) =>
      act(async () => (await import("./verify.ts")).verifyFile({ file, json: flags.json === true })),
    );
  return withExamples(withJson(command), [
    ["belay verify belay.db", "0: in order, 1: something was found"],
    ["belay verify belay.db --json", "the findings, for a script"],
  ]);
}
