// `belay serve`: its options.
import { Command, Option } from "commander";
import { act } from "../../shared/action.ts";
import { withExamples } from "../../shared/examples.ts";
import { withAgent } from "../../shared/server/agent-options.ts";

const LISTEN = "Where it listens:";
const LIMITS = "How many it takes:";
const REST = "How it goes about it:";

const MORE = `
Signals: SIGTERM and SIGINT end it in order (exit code 0; 1 if something had not come to rest within --drain-ms and is
recovered at the next start); a second one leaves at once. SIGHUP reads tokens and certificate again, and the log
level from the file log-level in the home; on a terminal it means that the terminal is gone, and ends it in order.
Keys: OPENAI_API_KEY, ANTHROPIC_API_KEY, or a file named by OPENAI_API_KEY_FILE, ANTHROPIC_API_KEY_FILE. They are taken
out of the environment before anything is started.`;

export function serveCommand(): Command {
  const command = new Command("serve")
    .description("the server: takes prompts, runs them, and can be asked to stop any of it")
    .addOption(
      new Option("--host <address>", "default 127.0.0.1; wider only with TLS or --behind-proxy").helpGroup(LISTEN),
    )
    .addOption(new Option("--port <n>", "default 23529, or a free one if that is taken; 0: any").helpGroup(LISTEN))
    .addOption(new Option("--socket <path>", "default in the home").helpGroup(LISTEN))
    .addOption(new Option("--no-tcp", "the socket only").helpGroup(LISTEN))
    .addOption(new Option("--tls-cert <file>", "PEM").helpGroup(LISTEN))
    .addOption(new Option("--tls-key <file>", "PEM").helpGroup(LISTEN))
    .addOption(new Option("--allow-host <name...>", "by which it may be called, besides localhost").helpGroup(LISTEN))
    .addOption(new Option("--allow-origin <origin...>", "web pages that may ask it").helpGroup(LISTEN))
    .addOption(
      new Option("--behind-proxy <file>", "holds the secret that a trusted proxy sends with each request").helpGroup(
        LISTEN,
      ),
    )
    .addOption(new Option("--changes-per-second <n>", "of one token; cancels do not count (20)").helpGroup(LIMITS))
    .addOption(new Option("--streams-per-token <n>", "event streams that it has open (32)").helpGroup(LIMITS))
    .addOption(new Option("--connections <n>", "at once (1024)").helpGroup(LIMITS))
    .addOption(new Option("--home <dir>", "where Belay keeps its things (else BELAY_HOME)").helpGroup(REST))
    .addOption(new Option("--store <file>", "default belay.db in the home; :memory: forgets").helpGroup(REST))
    .addOption(
      new Option("--retention <limits>", "what is kept, such as days=90,bytes=2GB,session-days=30").helpGroup(REST),
    )
    .addOption(
      new Option("--on-stop <what>", "what becomes of live runs when it ends")
        .choices(["park", "cancel"])
        .default("park")
        .helpGroup(REST),
    )
    .addOption(new Option("--drain-ms <ms>", "how long ending may take").default("10000").helpGroup(REST))
    .addOption(new Option("--log-level <level>", "debug, info, warn or error; else BELAY_LOG_LEVEL").helpGroup(REST))
    .addOption(new Option("--log-json", "JSON lines, also on a terminal").helpGroup(REST))
    .addOption(new Option("--json", "says where it is as one line of JSON on stdout").helpGroup(REST))
    .action((flags) => act(async () => (await import("./serve.ts")).runServe(flags)));
  return withExamples(withAgent(command, "The agent:").addHelpText("after", MORE), [
    ["belay serve", "with the demo agent, until you name a model"],
    ["belay serve --model openai/gpt-5 --workspace ~/project", "a model that works in a folder"],
    ["belay serve --port 0 --home /tmp/try", "any free port, and a home to throw away"],
    ["belay serve --no-tcp", "the private socket alone"],
  ]);
}
