// A provider in a thread of its own, for `streams.ts`: each answer begins and never ends. Its thread tears its own ends
// of the connections down, so that only the client's are in what is measured.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { parentPort } from "node:worker_threads";

const port = parentPort;
if (port === null) throw new Error("This file is the thread of a bench.");

const BEGINNING = `data: ${JSON.stringify({
  id: "1",
  object: "chat.completion.chunk",
  created: 0,
  model: "bench",
  choices: [{ index: 0, delta: { role: "assistant", content: "So far" }, finish_reason: null }],
})}\n\n`;

let open = 0;
const server = createServer((request, response) => {
  request.resume();
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(BEGINNING);
  open += 1;
  response.on("close", () => {
    open -= 1;
    if (open === 0) port.postMessage("closed");
  });
});
server.keepAliveTimeout = 1;
server.listen(0, "127.0.0.1", 4_096, () => port.postMessage((server.address() as AddressInfo).port));
