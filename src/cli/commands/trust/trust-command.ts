// `belay trust`: its options.
import { Command } from "commander";
import { act } from "../../shared/action.ts";
import { withJson } from "../../shared/connection-options.ts";
import { withExamples } from "../../shared/examples.ts";

export function trustCommand(): Command {
  const command = new Command("trust")
    .description("trust a configuration that is found in a directory, with its present content")
    .argument("[path]", "the configuration, or its directory; without it, list what is trusted")
    .option("--remove", "no longer trust it, whatever its content")
    .option("--home <dir>", "where Belay keeps its things (else BELAY_HOME)")
    .action((path, flags) => act(async () => (await import("./trust.ts")).runTrust(path, flags)));
  return withExamples(withJson(command), [
    ["belay trust .", "the configuration here, with every file that it names"],
    ["belay trust", "list what is trusted"],
    ["belay trust --remove ~/project", "ask again, or refuse, from now on"],
  ]);
}
