// `belay answer`: its options.
import { Command } from "commander";
import { act } from "../../shared/action.ts";
import { withConnectionOptions, withJson } from "../../shared/connection-options.ts";
import { withExamples } from "../../shared/examples.ts";
import type { AnswerFlags } from "./answer.ts";

export function answerCommand(): Command {
  const command = new Command("answer")
    .description("answers a question that is no approval")
    .argument("<question>", "its id, or the beginning of it")
    .argument("<value>", "the answer: a text, or with --as-json any JSON")
    .option("--as-json", "the value is JSON, not a text")
    .option("--by <name>", "who answers")
    .action((question: string, value: string, flags: AnswerFlags) =>
      act(async () => (await import("./answer.ts")).runAnswer(question, value, flags)),
    );
  return withExamples(withJson(withConnectionOptions(command)), [
    ["belay answer ask_01jd8v.1 blue", "with a text"],
    ["belay answer ask_01jd8v.1 --as-json '{\"copies\":2}'", "with JSON"],
  ]);
}
