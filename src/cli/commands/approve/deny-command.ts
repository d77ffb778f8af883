// `belay deny`: its options.
import { Command } from "commander";
import { act } from "../../shared/action.ts";
import { withConnectionOptions, withJson } from "../../shared/connection-options.ts";
import { withExamples } from "../../shared/examples.ts";
import type { ApproveFlags } from "./approve.ts";

export function denyCommand(): Command {
  const command = new Command("deny")
    .description("the call is not carried out; the model gets the reason and continues")
    .argument("<question>", "its id, or the beginning of it")
    .option("--note <text>", "why: told to the model")
    .option("--by <name>", "who says so")
    .option("--digest <digest>", "that of the bytes you have seen")
    .action((question: string, flags: ApproveFlags) =>
      act(async () => (await import("./approve.ts")).runApprove("deny", question, flags)),
    );
  return withExamples(withJson(withConnectionOptions(command)), [
    ["belay deny ask_01jd8v.1", "it is not carried out"],
    ["belay deny ask_01jd8v.1 --note 'not in production'", "and the model hears why"],
  ]);
}
