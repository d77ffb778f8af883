// `belay mode`: its options.
import { Command } from "commander";
import { act } from "../../shared/action.ts";
import { withConnectionOptions, withJson } from "../../shared/connection-options.ts";
import { withExamples } from "../../shared/examples.ts";
import type { ModeFlags } from "./mode.ts";

export function modeCommand(): Command {
  const command = new Command("mode")
    .description("how much the agent of a session may do by itself; shown, or set from now on")
    .argument("<session>", "its id, or the beginning of it")
    .argument("[mode]", "the mode to set; without it, what is set and what there is")
    .option("--by <name>", "who wants that")
    .action((session: string, mode: string | undefined, flags: ModeFlags) =>
      act(async () => (await import("./mode.ts")).runMode(session, mode, flags)),
    );
  return withExamples(withJson(withConnectionOptions(command)), [
    ["belay mode ses_01jd8v", "the mode it is in, and those there are"],
    ["belay mode ses_01jd8v read-only", "from its next call on it changes nothing"],
  ]);
}
