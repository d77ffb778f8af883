// What somebody is told who has typed `belay acp` on a terminal: it is for editors.
import type { Writable } from "node:stream";

const SETTINGS = {
  agent_servers: { Belay: { command: "belay", args: ["acp"], env: {} } },
};

export function printTerminalNotice(to: Writable): void {
  const lines = [
    "belay: this speaks ACP, the protocol between editors and agents, on stdin and stdout. Editors start it.",
    "       In the settings of an editor that knows ACP:",
    ...JSON.stringify(SETTINGS, undefined, 2)
      .split("\n")
      .map((line) => `         ${line}`),
    "       It goes on and waits for lines of JSON. Ctrl-D ends it.",
  ];
  to.write(`${lines.join("\n")}\n`);
}
