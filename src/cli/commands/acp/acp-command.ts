// `belay acp`: its options.
import { Command, Option } from "commander";
import { act } from "../../shared/action.ts";
import { withExamples } from "../../shared/examples.ts";
import { withAgent } from "../../shared/server/agent-options.ts";

const WHERE = "Which Belay (default: the running server of this home, else this program):";

const MORE = `
For editors, which start it and speak ACP with it on stdin and stdout; stderr has everything else. In their settings:
  "agent_servers": { "Belay": { "command": "belay", "args": ["acp"], "env": {} } }
Without a server the first editor's program does the work for all of them, and can be reached while it does: belay ps,
belay cancel, belay explain. When that editor exits, another editor's program takes over its runs.`;

export const AT_END = "what becomes of its runs when the editor is gone";

export function acpCommand(): Command {
  const command = new Command("acp")
    .description("an agent for editors that speak ACP, on stdin and stdout")
    .addOption(new Option("--url <url>", "a server at this address").conflicts("socket").helpGroup(WHERE))
    .addOption(new Option("--socket <path>", "a server at this unix socket").helpGroup(WHERE))
    .addOption(new Option("--token-file <file>", "holds the token for a server (else BELAY_TOKEN)").helpGroup(WHERE))
    .addOption(new Option("--home <dir>", "where Belay keeps its things (else BELAY_HOME)").helpGroup(WHERE))
    .addOption(new Option("--at-end <what>", `${AT_END} (cancel; keep with a server)`).choices(["cancel", "keep"]))
    .action((flags) => act(async () => (await import("./acp.ts")).startAcp(flags)));
  return withExamples(withAgent(command, "The agent (a server has its own):").addHelpText("after", MORE), [
    ["belay acp", "with the demo agent, until you name a model"],
    ["belay acp --model openai/gpt-5", "a model, which works in the folder the editor has open"],
    ["belay acp --socket ~/.local/state/belay/belay.sock", "the server there does the work"],
    ["belay acp --at-end keep", "runs outlive their editor, and go on at the next start"],
  ]);
}
