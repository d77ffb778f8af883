// `belay queue`: its options.
import { Command } from "commander";
import { act } from "../../shared/action.ts";
import { withConnectionOptions, withJson } from "../../shared/connection-options.ts";
import { withExamples } from "../../shared/examples.ts";
import type { QueueFlags } from "./queue.ts";

export function queueCommand(): Command {
  const command = new Command("queue")
    .description("what waits in a session; edits, moves, withdraws or steers one of it")
    .argument("<session>", "its id, or the beginning of it")
    .argument("[value]", "with --edit the new text; with --move front, back, or the run to stand before")
    .option("--edit <run>", "give a waiting run another text")
    .option("--move <run>", "give it another place")
    .option("--withdraw <run>", "take it back: it never begins")
    .option("--clear", "withdraw everything that waits; the live run continues")
    .option("--steer <run>", "let the live run take it in at its next turn")
    .option("--reason <text>", "with --withdraw or --clear: why")
    .action((session: string, value: string | undefined, flags: QueueFlags) =>
      act(async () => (await import("./queue.ts")).runQueue(session, value, flags)),
    );
  return withExamples(withJson(withConnectionOptions(command)), [
    ["belay queue ses_01jd8v", "what waits, next first"],
    ["belay queue ses_01jd8v --edit run_01jd9 'another text'", "before it begins; else it says `started`"],
    ["belay queue ses_01jd8v --move run_01jd9 front", "it is next"],
    ["belay queue ses_01jd8v --withdraw run_01jd9", "it never begins"],
    ["belay queue ses_01jd8v --clear", "nothing waits any more; the live run continues"],
  ]);
}
