// The limits and the idle timeout of ACP connections, and their end when a token is revoked.
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import { afterEach, describe, expect, test } from "vitest";
import * as limits from "../../src/http/limits.ts";
import {
  another,
  bearer,
  closeOf,
  enter,
  knock,
  opened,
  openTestAcpServer,
  prompt,
  type Talker,
  type TestAcpServer,
  talker,
  UPGRADE,
  WebSocket,
} from "../fixtures/acp-server.ts";
import { waits } from "../fixtures/belay.ts";

const servers: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of servers.splice(0)) await one.close();
});

async function open(...given: Parameters<typeof openTestAcpServer>): Promise<TestAcpServer> {
  const server = await openTestAcpServer(...given);
  servers.push(server);
  return server;
}

const addressOf = ({ port }: TestAcpServer): string => `127.0.0.1:${port}/acp`;
const overHttp = (server: TestAcpServer, token = "ann"): Talker =>
  talker(createHttpStream(`http://${addressOf(server)}`, { headers: bearer(token) }));
const overSocket = (server: TestAcpServer, token = "ann"): Talker =>
  talker(createWebSocketStream(`ws://${addressOf(server)}`, { WebSocket, headers: bearer(token) }));
const bare = (server: TestAcpServer, options: WebSocket.ClientOptions = {}): WebSocket =>
  new WebSocket(`ws://${addressOf(server)}`, { headers: bearer("ann"), ...options });

const hello = JSON.stringify({
  ...{ jsonrpc: "2.0", id: 1, method: "initialize" },
  params: { protocolVersion: 1, clientCapabilities: {} },
});

/** The next message on a bare WebSocket. */
const nextMessage = (socket: WebSocket): Promise<string> =>
  new Promise((resolve) => socket.once("message", (data) => resolve(String(data))));

const WAYS = { HTTP: overHttp, "a WebSocket": overSocket } as const;

describe.each(Object.entries(WAYS))("over %s", (_, way) => {
  test("G35: the connections of a revoked token end within a second, and no others do", async () => {
    const server = await open({ tea: waits });
    const [ann, ben] = [way(server, "ann"), way(server, "ben")];
    const session = await enter(ann);
    await enter(ben);
    void prompt(ann, session, "tea").catch(() => {});
    await server.began("tea");
    server.tokens.delete("ann");
    await server.clock.advance(limits.STREAM_CHECK_MS);
    await Promise.all([ann.ended, server.open.becomes(1)]);
    await expect(ben.request("session/list", {})).resolves.toHaveProperty("result");
    // The run continues: it was not cancelled.
    await expect(server.belay.session(session).explain()).resolves.toMatchObject({ busy: true });
    await ben.close();
  });

  test("the rate limit of a token applies to prompts and not to stops", async () => {
    const server = await open({ tea: waits }, { mutationsPerSecond: 1, mutationsBurst: 3 });
    const client = way(server);
    const session = await enter(client);
    const first = prompt(client, session, "tea");
    await server.began("tea");
    void prompt(client, session, "more");
    const refused = await prompt(client, session, "too much");
    expect(refused.error).toMatchObject({ code: -32012, data: { code: "overloaded", retryable: true } });
    await client.notify("session/cancel", { sessionId: session });
    await expect(first).resolves.toMatchObject({ result: { stopReason: "cancelled" } });
    expect(server.begun).toEqual(["tea"]);
    await client.close();
  });

  test("connections count against the stream limit of their token", async () => {
    const server = await open({}, { streamsPerToken: 1 });
    const first = way(server);
    await first.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
    const met = await knock(server.port, { method: "GET", headers: { ...UPGRADE, ...bearer("ann") } });
    expect([met.status, JSON.parse(met.body).error.code]).toEqual([429, "overloaded"]);
    const other = await knock(server.port, { method: "GET", headers: { ...UPGRADE, ...bearer("ben") } });
    expect(other.status).toBe(101);
    await first.close();
  });
});

describe("a WebSocket", () => {
  test("without a first message is closed", async () => {
    const server = await open();
    const socket = await opened(bare(server));
    const closed = closeOf(socket);
    await server.clock.advance(limits.ACP_GREETING_MS);
    await expect(closed).resolves.toEqual({ code: 1008, reason: "initialize did not come" });
  });

  test("that answers no ping is closed, and one that does is not", {
    meta: { id: "acp/dead-websocket-dropped" },
  }, async () => {
    const server = await open();
    const [dead, alive] = [await opened(bare(server, { autoPong: false })), await opened(bare(server))];
    for (const socket of [dead, alive]) {
      const answer = nextMessage(socket);
      socket.send(hello);
      await answer;
    }
    const gone = closeOf(dead);
    const pinged = Promise.all([dead, alive].map((one) => new Promise((resolve) => one.once("ping", resolve))));
    await server.clock.advance(limits.ACP_GREETING_MS);
    await pinged;
    // The pong of the live one has arrived once a message that was sent after it is answered.
    const behind = nextMessage(alive);
    alive.send(JSON.stringify({ jsonrpc: "2.0", id: 2, method: "session/list", params: {} }));
    await behind;
    await server.clock.advance(limits.ACP_PING_MS);
    await expect(gone).resolves.toMatchObject({ code: 1006 });
    expect(alive.readyState).toBe(WebSocket.OPEN);
    alive.terminate();
  });

  test("that sends more than the maximum size of a body is closed", async () => {
    const server = await open();
    const socket = await opened(bare(server));
    const closed = closeOf(socket);
    socket.send("x".repeat(limits.BODY_BYTES_MAX + 1));
    await expect(closed).resolves.toMatchObject({ code: 1009 });
  });

  test("that sends a binary message is closed", async () => {
    const server = await open();
    const socket = await opened(bare(server));
    const closed = closeOf(socket);
    socket.send(Buffer.from(hello));
    await expect(closed).resolves.toEqual({ code: 1003, reason: "messages are text" });
  });

  test("without a key is refused with the usual error body", async () => {
    const server = await open();
    const { "sec-websocket-key": _, ...headers } = UPGRADE;
    const met = await knock(server.port, { method: "GET", headers: { ...headers, ...bearer("ann") } });
    expect([met.status, JSON.parse(met.body).error.code]).toEqual([400, "invalid"]);
    expect(server.open.count).toBe(0);
  });

  test("is closed when the server shuts down, and no other can be opened then", async () => {
    const server = await open();
    const socket = await opened(bare(server));
    const closed = closeOf(socket);
    const drained = server.handler.drain();
    const met = await knock(server.port, { method: "GET", headers: { ...UPGRADE, ...bearer("ann") } });
    expect([met.status, JSON.parse(met.body).error.code]).toEqual([503, "shutting_down"]);
    await expect(closed).resolves.toMatchObject({ code: 1001 });
    await drained;
  });
});

describe("over HTTP", () => {
  test("an idle connection is closed, and one with a reader is not", async () => {
    const server = await open();
    const left = await knock(server.port, {
      ...{ method: "POST", headers: { "content-type": "application/json", ...bearer("ann") }, body: hello },
    });
    const read = overHttp(server);
    await enter(read);
    expect(server.open.count).toBe(2);
    await server.clock.advance(limits.ACP_IDLE_MS + limits.STREAM_CHECK_MS);
    expect(server.open.count).toBe(1);
    const id = String(left.headers["acp-connection-id"]);
    const met = await knock(server.port, { method: "DELETE", headers: { "acp-connection-id": id, ...bearer("ann") } });
    expect(met.status).toBe(404);
    await expect(read.request("session/list", {})).resolves.toHaveProperty("result");
    await read.close();
  });

  test("a body that is too large is refused", async () => {
    const server = await open();
    const met = await knock(server.port, {
      ...{ method: "POST", headers: { "content-type": "application/json", ...bearer("ann") } },
      body: "x".repeat(limits.BODY_BYTES_MAX + 1),
    });
    expect([met.status, JSON.parse(met.body).error.code]).toEqual([413, "invalid"]);
  });

  test.each([
    ["invalid JSON", "{", 400, "invalid"],
    ["an invalid id", '{"jsonrpc":"2.0","id":{},"method":"initialize","params":{}}', 400, "invalid"],
    ["no initialize", '{"jsonrpc":"2.0","id":1,"method":"session/list"}', 400, "invalid"],
  ])("a first message with %s opens no connection", async (_, body, status, code) => {
    const server = await open();
    const headers = { "content-type": "application/json", ...bearer("ann") };
    const met = await knock(server.port, { method: "POST", headers, body });
    expect([met.status, JSON.parse(met.body).error.code]).toEqual([status, code]);
    await server.open.becomes(0);
  });

  test("the sessions of one connection do not count against the stream limit, and all get updates", async () => {
    const server = await open({}, { streamsPerToken: 1 });
    const client = overHttp(server);
    for (const session of [await enter(client), await another(client), await another(client)]) {
      expect((await prompt(client, session, "tea")).result).toMatchObject({ stopReason: "end_turn" });
    }
    const headers = { "content-type": "application/json", ...bearer("ann") };
    const second = await knock(server.port, { method: "POST", headers, body: hello });
    expect([second.status, JSON.parse(second.body).error.code]).toEqual([429, "overloaded"]);
    await client.close();
    await server.open.becomes(0);
    const again = overHttp(server);
    await prompt(again, await enter(again), "tea");
    await again.close();
  });
});
