// An agent that speaks ACP and does not listen when it is asked to stop, under Belay: it is stopped all the same.
import { fileURLToPath } from "node:url";
import { agent, ndJsonStream } from "@agentclientprotocol/sdk";
import { openBelay } from "agent-belay";
import { externalAgent } from "agent-belay/acp";

if (process.argv[2] === "agent") stubborn();
else await main();

async function main(): Promise<void> {
  // In a program of yours: command: ["some-agent", "--acp"].
  const command = [process.execPath, ...process.execArgv, fileURLToPath(import.meta.url), "agent"] as const;
  const belay = await openBelay({ store: ":memory:", graceMs: 600, agent: externalAgent({ command }) });
  const session = await belay.createSession();
  const run = session.prompt("Work, and do not stop");
  for await (const event of run) {
    if (event.type !== "delta") continue;
    console.log("it says:", event.text);
    const { kind } = await run.cancel({ reason: "enough" });
    console.log("the cancel:", kind);
  }
  console.log("the outcome:", await run.outcome);
  console.log("processes left:", (await session.processes.list()).length);
  await belay.close();
}

function stubborn(): void {
  const { stdin, stdout } = process;
  const output = new WritableStream<Uint8Array>({ write: (piece) => void stdout.write(piece) });
  const input = ReadableStream.from<Uint8Array>(stdin);
  agent({ name: "stubborn" })
    .onRequest("initialize", () => ({ protocolVersion: 1 }))
    .onRequest("session/new", () => ({ sessionId: "one" }))
    .onRequest("session/prompt", async ({ client, params: { sessionId } }) => {
      const content = { type: "text", text: "never" } as const;
      await client.notify("session/update", { sessionId, update: { sessionUpdate: "agent_message_chunk", content } });
      return new Promise(() => {}); // and ignores every cancel
    })
    .connect(ndJsonStream(output, input));
}

// Prints:
//
//   it says: never
//   the cancel: stopping
//   the outcome: { kind: 'cancelled', reason: { kind: 'user', note: 'enough' } }
//   processes left: 0
