// Example 01 over HTTP: Belay runs in a server, and only the line that opens it is another one.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openBelay } from "agent-belay";
import { connectBelay } from "agent-belay/client";
import { serveBelay } from "agent-belay/server";

// The server. `belay serve` does this, and more; here it is in the same file.
const tokens = mkdtempSync(join(tmpdir(), "belay-"));
const house = await openBelay({
  store: ":memory:",
  agent: async (turn) => {
    const built = await turn.call("build", {}, ({ signal }) => sleep(60_000, "ok", { signal }));
    return `The build was ${built.kind}.`;
  },
});
const server = await serveBelay(house, { tokens }); // a free port of the loopback, and a token in a private file
const token = readFileSync(server.tokenFile ?? "", "utf8").trim();

// The client: this line, and then what is in example 01, word for word.
const belay = await connectBelay({ url: server.at, token });
const session = await belay.createSession();
const run = session.prompt("Build the site");
for await (const event of run) {
  if (event.type === "call.requested") console.log(await run.cancel({ reason: "changed my mind" }));
}
console.log(await run.outcome, await run.text());
await belay.close(); // lets go, and stops nothing

await server.close();
await house.close();
rmSync(tokens, { recursive: true });

// Prints:
//
//   { kind: 'stopping', since: 6, first: true }
//   {
//     kind: 'cancelled',
//     reason: { kind: 'user', note: 'changed my mind', by: 'local' }
//   } The build was cancelled.
