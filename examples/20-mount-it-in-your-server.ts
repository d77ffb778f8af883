// Belay inside a web server that you have already: every request below /agents goes to it, and you say who may ask.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { openBelay } from "agent-belay";
import { connectBelay } from "agent-belay/client";
import { fetchBelay } from "agent-belay/server";

const PREFIX = "/agents";
const belay = await openBelay({ store: ":memory:", agent: async (turn) => `You said: ${turn.prompt.text}` });
const { node, close } = fetchBelay(belay, {
  basePath: PREFIX,
  // May ask a database: what it rejects with is a refusal.
  tokens: async (token) =>
    token === "anns-token" ? { name: "ann", scopes: ["read", "prompt", "cancel"], tenant: "acme" } : undefined,
});

const web = createServer((incoming, outgoing) => {
  if (incoming.url?.startsWith(`${PREFIX}/`)) node(incoming, outgoing);
  else outgoing.end("your own site\n");
});
await new Promise<void>((listening) => web.listen(0, "127.0.0.1", listening));
const origin = `http://127.0.0.1:${(web.address() as AddressInfo).port}`;

console.log((await (await globalThis.fetch(`${origin}/`)).text()).trim());
console.log("without a token:", (await globalThis.fetch(`${origin}${PREFIX}/v1/sessions`)).status);
const client = await connectBelay({ url: origin + PREFIX, token: "anns-token" });
const run = client.prompt("hello");
console.log((await run.result()).text);
console.log("of her tenant:", run.sessionId.startsWith("ses_acme."));
await client.close();

await close(); // ends the streams with a last word
web.closeAllConnections();
web.close();
await belay.close();

// Prints:
//
//   your own site
//   without a token: 401
//   You said: hello
//   of her tenant: true
