// G31: a client that opens a stream and never reads costs at most 1 MiB and delays no other client.
import type { ServerResponse } from "node:http";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { Guard } from "../../src/http/auth/guard.ts";
import { makeHandler } from "../../src/http/handler.ts";
import { TOKEN_SCOPES } from "../../src/http/transport/http-exchange.ts";
import { NodeServer } from "../../src/http/transport/node-server.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { openTestBelay } from "../fixtures/belay.ts";

const MEBIBYTE = 1024 * 1024;
/** Quotes, which JSON doubles: each event alone is larger than the limit of a reader. */
const PROMPT = '"'.repeat(768 * 1024);
const PROMPTS = 40;

test("G31: a reader that never reads 50 MiB of events costs at most 1 MiB", {
  timeout: 60_000,
  meta: { id: "G31/unread-stream-bounded" },
}, async () => {
  const { belay } = await openTestBelay();
  const actor = { name: "ann", scopes: new Set(TOKEN_SCOPES), tenant: undefined };
  const guard = new Guard({ tokens: { verify: () => actor }, clock: systemClock });
  const handler = makeHandler({ control: belay, guard, clock: systemClock, version: "0" });
  const node = new NodeServer({ handle: handler.handle, clock: systemClock, via: "tcp" });
  const responses: ServerResponse[] = [];
  node.server.on("request", (_, response: ServerResponse) => responses.push(response));
  const port = await new Promise<number>((resolve) => {
    node.server.listen(0, "127.0.0.1", () => {
      const address = node.server.address();
      resolve(typeof address === "object" && address !== null ? address.port : 0);
    });
  });
  guard.serves({ scheme: "http", port });

  const session = await belay.createSession();
  const socket = connect(port, "127.0.0.1");
  // It is never read: the server's output fills the buffers of the system and then waits.
  socket.pause();
  socket.write(
    `GET /v1/sessions/${session.id}/events?deltas=with HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n` +
      "authorization: Bearer a\r\n\r\n",
  );
  await new Promise((resolve) => node.server.once("request", resolve));

  let most = 0;
  let stalled = 0;
  let received = 0;
  for (let count = 0; count < PROMPTS; count += 1) {
    // Another reader gets each event immediately.
    const run = session.prompt(PROMPT);
    for await (const event of run) received += JSON.stringify(event).length;
    const waiting = responses.reduce((sum, one) => sum + one.writableLength + (one.socket?.writableLength ?? 0), 0);
    most = Math.max(most, waiting);
    if (waiting > 0) stalled += 1;
  }
  expect(received).toBeGreaterThan(50 * MEBIBYTE);
  expect(most).toBeLessThan(MEBIBYTE);
  // It was stalled: most of the time there was unread output.
  expect(stalled).toBeGreaterThan(PROMPTS / 2);
  expect(handler.streams).toBe(1);

  socket.destroy();
  await Promise.all([handler.drain(), node.close(1000), belay.close({ mode: "cancel" })]);
  expect(handler.streams).toBe(0);
});
