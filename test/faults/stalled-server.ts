// A whole house as a program of its own, for those who want to stall its disk: says where it listens, and ends when its
// input does.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { serveBelay } from "../../src/http/serve.ts";
import { openBelay } from "../../src/sdk/belay.ts";

const folder = process.argv[2] ?? "";
const belay = await openBelay({
  store: join(folder, "belay.db"),
  graceMs: 500,
  processes: { workspace: folder, dir: join(folder, "processes") },
  agent: async (turn) => {
    if (turn.prompt.text !== "sleeps") return "done";
    const { kind } = await turn.call("shell", null, async ({ processes }) => (await processes.run("sleep 1000")).kind);
    return kind;
  },
});
const serving = await serveBelay(belay, { tokens: join(folder, "tokens") });
const token = readFileSync(serving.tokenFile ?? "", "utf8").trim();
process.stdout.write(`${JSON.stringify({ at: serving.at, token })}\n`);
process.stdin.resume().on("end", async () => {
  await serving.close();
  await belay.close({ mode: "cancel" });
});
