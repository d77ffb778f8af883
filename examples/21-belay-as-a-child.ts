// Belay as a child of your program: requests and answers are lines of JSON, so any language will do.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const home = mkdtempSync(join(tmpdir(), "belay-"));
// In a program of yours: spawn("npx", ["belay", "bridge", …]). Without --model it has the demo agent.
const belay = fileURLToPath(new URL("../src/cli/main.ts", import.meta.url));
const child = spawn(process.execPath, [belay, "bridge", "--home", home, "--store", ":memory:"], {
  stdio: ["pipe", "pipe", "ignore"], // its log is on stderr
});

let last = 0;
const send = (method: string, params: object = {}): number => {
  last += 1;
  child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: last, method, params })}\n`);
  return last;
};

const opened = send("session/new");
let [prompted, sessionId] = [0, ""];
for await (const line of createInterface({ input: child.stdout })) {
  const { id, method, params, result } = JSON.parse(line);
  if (id === opened) {
    ({ sessionId } = result);
    send("session/subscribe", { sessionId });
    prompted = send("session/prompt", { sessionId, prompt: "count to 30" });
  }
  if (method === "event" && params.event.type === "call.requested") {
    console.log("it calls", params.event.name);
    send("session/cancel", { sessionId, reason: "enough" }); // carried out in the tick in which the line is read
  }
  if (result?.status !== undefined) console.log("the cancel:", result.kind, result.status);
  if (id !== prompted) continue;
  console.log("the prompt:", result.outcome); // answered when the run has ended
  send("shutdown");
}
console.log("left with", child.exitCode ?? (await new Promise((left) => child.once("exit", left))));
rmSync(home, { recursive: true });

// Prints:
//
//   it calls count_slowly
//   the cancel: stopping cancelled
//   the prompt: { kind: 'cancelled', reason: { kind: 'user', note: 'enough' } }
//   left with 0
