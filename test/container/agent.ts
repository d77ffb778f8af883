// The agent of the course in `container.slow.test.ts`: does what its prompt says, with commands.
import type { Agent } from "../../src/ports/agent.ts";
import { hostileTree } from "../fixtures/marked-process.ts";

export const agent: Agent = async (turn) => {
  const [what, value = ""] = turn.prompt.text.split(" ");
  const run = (command: string): Promise<unknown> =>
    turn.call("shell", { command }, async ({ processes }) => {
      const ran = await processes.run(command);
      return ran.kind === "ended" ? JSON.stringify(ran.exit) : ran.kind;
    });
  if (what === "tree") await run(hostileTree(value));
  if (what === "memory") await run(`perl -e '$all .= "x" x 1048576 for 1 .. ${value}; print "it fits"'`);
  if (what === "commands") {
    for (let count = 0; count < Number(value); count += 1) {
      const result = await run("true");
      if (JSON.stringify(result).includes("failed")) throw new Error(`Command ${count}: ${JSON.stringify(result)}`);
    }
  }
  return "done";
};
