// `belay bridge`: its options.
import { Command, Option } from "commander";
import { act } from "../../shared/action.ts";
import { withExamples } from "../../shared/examples.ts";
import { withAgent } from "../../shared/server/agent-options.ts";

const WHERE = "Which Belay (default: that of the data directory):";

const MORE = `
For programs, not for people: one JSON object to a line on stdin and stdout, JSON-RPC 2.0; stderr has everything else.
Begin with {"jsonrpc":"2.0","id":1,"method":"initialize"}: the answer names every method. It ends with \`shutdown\`, or
when stdin ends: then the program that started it is gone, and --on-hangup says what happens to its runs.
The store is held by one program at a time. To share one, start \`belay serve\` and give each bridge its --socket.`;

export function bridgeCommand(): Command {
  const command = new Command("bridge")
    .description("JSON lines on stdin and stdout, for a program that runs Belay as its child")
    .addOption(new Option("--url <url>", "a server at this address").conflicts(["socket", "store"]).helpGroup(WHERE))
    .addOption(new Option("--socket <path>", "a server at this unix socket").conflicts("store").helpGroup(WHERE))
    .addOption(new Option("--token-file <file>", "holds the token for a server (else BELAY_TOKEN)").helpGroup(WHERE))
    .addOption(new Option("--store <file>", "default belay.db in the home; :memory: forgets").helpGroup(WHERE))
    .addOption(new Option("--home <dir>", "where Belay keeps its things (else BELAY_HOME)").helpGroup(WHERE))
    .addOption(
      new Option("--on-hangup <what>", "what becomes of its runs when the program that started it is gone")
        .choices(["cancel", "park"])
        .default("cancel"),
    )
    .action((flags) => act(async () => (await import("./bridge.ts")).startBridge(flags)));
  return withExamples(withAgent(command, "The agent (a server has its own):").addHelpText("after", MORE), [
    ["belay bridge", "with the demo agent, until you name a model"],
    ["belay bridge --model openai/gpt-5 --workspace .", "a model that works in this folder"],
    ["belay bridge --store :memory:", "nothing is kept"],
    ["belay bridge --socket ~/.local/state/belay/belay.sock", "to a server that runs already"],
  ]);
}
