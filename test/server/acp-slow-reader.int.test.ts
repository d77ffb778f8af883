// G31: an editor that stops reading costs at most 1 MiB and delays no other client.
import { request } from "node:http";
import type { Socket } from "node:net";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import { expect, test } from "vitest";
import { Guard } from "../../src/http/auth/guard.ts";
import { makeHandler } from "../../src/http/handler.ts";
import { NodeServer } from "../../src/http/transport/node-server.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { actor, bearer, enter, knock, opened, prompt, talker, WebSocket } from "../fixtures/acp-server.ts";
import { openTestBelay } from "../fixtures/belay.ts";

const MEBIBYTE = 1024 * 1024;
const PIECE = "tea ".repeat(16 * 1024);
const PIECES = 4;
const PROMPTS = 220;

/** A client in a session that does not read its updates. The returned function disconnects it. */
type Slow = (port: number, session: string) => Promise<() => void>;

const overWebSocket: Slow = async (port, session) => {
  const slow = await opened(new WebSocket(`ws://127.0.0.1:${port}/acp`, { headers: bearer("ben") }));
  const ask = (message: object): Promise<unknown> => {
    slow.send(JSON.stringify(message));
    return new Promise((resolve) => slow.once("message", resolve));
  };
  await ask(HELLO);
  await ask(resuming(session));
  // It is not read again: the server's output fills the buffers of the system and then waits.
  slow.pause();
  return () => slow.terminate();
};

const overHttp: Slow = async (port, session) => {
  const headers = { "content-type": "application/json", ...bearer("ben") };
  const hello = await knock(port, { method: "POST", headers, body: JSON.stringify(HELLO) });
  const own = { ...headers, "acp-connection-id": String(hello.headers["acp-connection-id"]) };
  const inSession = { ...own, "acp-session-id": session, accept: "text/event-stream" };
  const slow = request({ host: "127.0.0.1", port, path: "/acp", headers: inSession, agent: false }).end();
  // Only the head of the response is read.
  await new Promise((resolve) => slow.once("response", resolve));
  await knock(port, { method: "POST", headers: inSession, body: JSON.stringify(resuming(session)) });
  return () => slow.destroy();
};

const HELLO = {
  ...{ jsonrpc: "2.0", id: 1, method: "initialize" },
  params: { protocolVersion: 1, clientCapabilities: {} },
};

const resuming = (sessionId: string) => ({
  ...{ jsonrpc: "2.0", id: 2, method: "session/resume" },
  params: { sessionId, cwd: "/", mcpServers: [] },
});

test.each([
  ["a WebSocket", overWebSocket],
  ["HTTP", overHttp],
])(
  "G31: an editor that never reads 50 MiB of updates over %s costs at most 1 MiB",
  { timeout: 60_000, meta: { id: "G31/unread-editor-bounded" } },
  async (_, way) => {
    const { belay } = await openTestBelay(
      {
        much: (turn) => {
          for (let count = 0; count < PIECES; count += 1) turn.emit(PIECE);
          return PIECE.repeat(PIECES);
        },
      },
      { directories: "any" },
    );
    const guard = new Guard({
      ...{ tokens: { verify: (name) => actor(name) }, clock: systemClock },
      ...{ mutationsPerSecond: 1e6, mutationsBurst: 1e6 },
    });
    const handler = makeHandler({ control: belay, guard, clock: systemClock, version: "0" });
    const node = new NodeServer({ handle: handler.handle, clock: systemClock, via: "tcp" });
    const sockets: Socket[] = [];
    node.server.on("connection", (socket: Socket) => sockets.push(socket));
    const port = await new Promise<number>((resolve) => {
      node.server.listen(0, "127.0.0.1", () => {
        const address = node.server.address();
        resolve(typeof address === "object" && address !== null ? address.port : 0);
      });
    });
    guard.serves({ scheme: "http", port });
    const url = `ws://127.0.0.1:${port}/acp`;

    const reader = talker(createWebSocketStream(url, { WebSocket, headers: bearer("ann") }));
    const session = await enter(reader);
    const leave = await way(port, session);

    let most = 0;
    let stalled = 0;
    let received = 0;
    for (let count = 0; count < PROMPTS; count += 1) {
      await expect(prompt(reader, session, "much")).resolves.toMatchObject({ result: { stopReason: "end_turn" } });
      received += JSON.stringify(reader.told.splice(0)).length;
      const waiting = Math.max(...sockets.slice(1).map((one) => one.writableLength));
      most = Math.max(most, waiting);
      if (waiting > 0) stalled += 1;
    }
    expect(received).toBeGreaterThan(50 * MEBIBYTE);
    expect(most).toBeLessThan(MEBIBYTE);
    expect(stalled).toBeGreaterThan(PROMPTS / 2);

    leave();
    await reader.close();
    await Promise.all([handler.drain(), node.close(1000), belay.close({ mode: "cancel" })]);
  },
);
