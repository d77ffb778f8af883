// Belay inside a web server that you have already: every request below /agents goes to it, and you say who may ask.
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { openBelay } from "agent-belay";
import { connectBelay } from "agent-belay/client";
import { fetchBelay } from "agent-belay/server";

const PREFIX = "/agents";
const belay = await openBelay({ store: ":memory:", agent: async (turn) => `You said: ${turn.prompt.text}` });
const scopes = new Set(["read", "prompt", "cancel"] as const);
const { fetch, close } = fetchBelay(belay, {
  tokens: (token) => (token === "anns-token" ? { name: "ann", scopes, tenant: "acme" } : undefined),
});

/** What Node has heard, as the web's own request. `gone` ends the answering; it cancels no run. */
function webRequest(incoming: IncomingMessage, gone: AbortSignal): Request {
  const { method = "GET", url = "/", headers } = incoming;
  const body = method === "GET" ? {} : { body: Readable.toWeb(incoming) as ReadableStream, duplex: "half" as const };
  return new Request(`http://${headers.host}${url.slice(PREFIX.length)}`, {
    ...{ method, signal: gone, ...body },
    headers: Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]),
  });
}

const web = createServer(async (incoming, outgoing) => {
  if (!incoming.url?.startsWith(`${PREFIX}/`)) return void outgoing.end("your own site\n");
  const gone = new AbortController();
  outgoing.on("close", () => gone.abort());
  const { status, headers, body } = await fetch(webRequest(incoming, gone.signal));
  outgoing.writeHead(status, Object.fromEntries(headers));
  await pipeline(body === null ? Readable.from([]) : Readable.fromWeb(body), outgoing).catch(() => {});
});
await new Promise<void>((listening) => web.listen(0, "127.0.0.1", listening));
const origin = `http://127.0.0.1:${(web.address() as AddressInfo).port}`;

console.log((await (await globalThis.fetch(`${origin}/`)).text()).trim());
console.log("without a token:", (await globalThis.fetch(`${origin}${PREFIX}/v1/sessions`)).status);
const client = await connectBelay({ url: origin + PREFIX, token: "anns-token" });
const run = client.prompt("hello");
console.log((await run.outcome).kind, "-", await run.text());
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
//   completed - You said: hello
//   of her tenant: true
