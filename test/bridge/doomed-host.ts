// A host that starts a bridge and a run, and waits to be killed. It passes its fourth stream on to the bridge, so that
// the holder of the other end sees the bridge end.
import { spawn } from "node:child_process";

const [main = "", ...words] = process.argv.slice(2);
const bridge = spawn(process.execPath, [main, ...words], { stdio: ["pipe", "pipe", "inherit", 3] });
const send = (message: object): void => void bridge.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
bridge.stdout?.on("data", (piece: Buffer) => {
  const sessionId = /"sessionId":"(ses_[^"]+)"/.exec(piece.toString())?.[1];
  if (sessionId !== undefined && piece.includes('"id":1')) {
    send({ id: 2, method: "session/subscribe", params: { sessionId, deltas: "with" } });
    send({ id: 3, method: "session/prompt", params: { sessionId, prompt: "wait" } });
    process.stdout.write(`${sessionId}\n`);
  }
});
send({ id: 1, method: "session/new" });
