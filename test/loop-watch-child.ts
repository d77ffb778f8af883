// A program whose agent spins on promises of its own until a file exists, and then waits. What Belay says of it
// afterwards goes to standard output.
import { existsSync } from "node:fs";
import { openBelay } from "../src/index.ts";

const [flag = "", form] = process.argv.slice(2);
const belay = await openBelay({
  store: ":memory:",
  ...(form === "json" ? { loopWatch: "json" } : {}),
  agent: async (turn) => {
    process.stdout.write(`${JSON.stringify({ sessionId: turn.sessionId, runId: turn.runId })}\n`);
    await turn.call("spin", {}, async () => {
      while (!existsSync(flag)) await Promise.resolve();
      await new Promise(() => {});
    });
  },
  onNotice: async (notice) => {
    const { live, summary } = await session.explain();
    process.stdout.write(`${JSON.stringify({ notice, blocked: live?.blocked, summary })}\n`);
    await belay.close({ mode: "cancel" });
    process.exit(0);
  },
});
const session = await belay.createSession();
session.prompt("work");
// Keeps the program alive as a server's socket would.
setInterval(() => {}, 2 ** 30);
