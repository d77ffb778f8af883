// `belay explain`: its options.
import { Command } from "commander";
import { act } from "../../shared/action.ts";
import { type ConnectionOptions, withConnectionOptions, withJson } from "../../shared/connection-options.ts";
import { withExamples } from "../../shared/examples.ts";

export function explainCommand(): Command {
  const command = new Command("explain")
    .description("why a session is busy, what it waits for, and what a cancel would do")
    .argument("<id>", "a session, or anything in one")
    .action((id: string, flags: ConnectionOptions & { readonly json?: true }) =>
      act(async () => (await import("./explain.ts")).runExplain(id, flags)),
    );
  return withExamples(withJson(withConnectionOptions(command)), [
    ["belay explain ses_01jd8v", "one sentence, and what is behind it"],
    ["belay explain run_01jd9", "the session of that run"],
  ]);
}
