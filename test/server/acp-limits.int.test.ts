// What one ACP connection may cost, how long one lives that nobody uses, and how it ends with its token.
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

const houses: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of houses.splice(0)) await one.close();
});

async function open(...given: Parameters<typeof openTestAcpServer>): Promise<TestAcpServer> {
  const house = await openTestAcpServer(...given);
  houses.push(house);
  return house;
}

const addressOf = ({ port }: TestAcpServer): string => `127.0.0.1:${port}/acp`;
const overHttp = (house: TestAcpServer, token = "ann"): Talker =>
  talker(createHttpStream(`http://${addressOf(house)}`, { headers: bearer(token) }));
const overSocket = (house: TestAcpServer, token = "ann"): Talker =>
  talker(createWebSocketStream(`ws://${addressOf(house)}`, { WebSocket, headers: bearer(token) }));
const bare = (house: TestAcpServer, options: WebSocket.ClientOptions = {}): WebSocket =>
  new WebSocket(`ws://${addressOf(house)}`, { headers: bearer("ann"), ...options });

const hello = JSON.stringify({
  ...{ jsonrpc: "2.0", id: 1, method: "initialize" },
  params: { protocolVersion: 1, clientCapabilities: {} },
});

/** One message that comes in on a bare WebSocket. */
const heard = (socket: WebSocket): Promise<string> =>
  new Promise((resolve) => socket.once("message", (data) => resolve(String(data))));

const WAYS = { HTTP: overHttp, "a WebSocket": overSocket } as const;

describe.each(Object.entries(WAYS))("over %s", (_, way) => {
  test("G35: the connections of a revoked token end within a second, those of others do not", async () => {
    const house = await open({ tea: waits });
    const [ann, ben] = [way(house, "ann"), way(house, "ben")];
    const session = await enter(ann);
    await enter(ben);
    void prompt(ann, session, "tea").catch(() => {});
    await house.began("tea");
    house.tokens.delete("ann");
    await house.clock.advance(limits.STREAM_CHECK_MS);
    await Promise.all([ann.ended, house.open.becomes(1)]);
    await expect(ben.request("session/list", {})).resolves.toHaveProperty("result");
    // The run goes on: nobody has asked for its end.
    await expect(house.belay.session(session).explain()).resolves.toMatchObject({ busy: true });
    await ben.close();
  });

  test("prompts are held to the rate of their token, and stops are not", async () => {
    const house = await open({ tea: waits }, { mutationsPerSecond: 1, mutationsBurst: 3 });
    const client = way(house);
    const session = await enter(client);
    const first = prompt(client, session, "tea");
    await house.began("tea");
    void prompt(client, session, "more");
    const refused = await prompt(client, session, "too much");
    expect(refused.error).toMatchObject({ code: -32012, data: { code: "overloaded", retryable: true } });
    await client.notify("session/cancel", { sessionId: session });
    await expect(first).resolves.toMatchObject({ result: { stopReason: "cancelled" } });
    expect(house.begun).toEqual(["tea"]);
    await client.close();
  });

  test("a token has no more connections than it may have streams", async () => {
    const house = await open({}, { streamsPerToken: 1 });
    const first = way(house);
    await first.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
    const met = await knock(house.port, { method: "GET", headers: { ...UPGRADE, ...bearer("ann") } });
    expect([met.status, JSON.parse(met.body).error.code]).toEqual([429, "overloaded"]);
    const other = await knock(house.port, { method: "GET", headers: { ...UPGRADE, ...bearer("ben") } });
    expect(other.status).toBe(101);
    await first.close();
  });
});

describe("a WebSocket", () => {
  test("that says nothing is closed", async () => {
    const house = await open();
    const socket = await opened(bare(house));
    const closed = closeOf(socket);
    await house.clock.advance(limits.ACP_GREETING_MS);
    await expect(closed).resolves.toEqual({ code: 1008, reason: "initialize did not come" });
  });

  test("that gives no sign of life is ended, and one that does is not", {
    meta: { id: "acp/dead-websocket-dropped" },
  }, async () => {
    const house = await open();
    const [dead, alive] = [await opened(bare(house, { autoPong: false })), await opened(bare(house))];
    for (const socket of [dead, alive]) {
      const answer = heard(socket);
      socket.send(hello);
      await answer;
    }
    const gone = closeOf(dead);
    const pinged = Promise.all([dead, alive].map((one) => new Promise((resolve) => one.once("ping", resolve))));
    await house.clock.advance(limits.ACP_GREETING_MS);
    await pinged;
    // What the living one has answered is here once something that was sent behind it is answered.
    const behind = heard(alive);
    alive.send(JSON.stringify({ jsonrpc: "2.0", id: 2, method: "session/list", params: {} }));
    await behind;
    await house.clock.advance(limits.ACP_PING_MS);
    await expect(gone).resolves.toMatchObject({ code: 1006 });
    expect(alive.readyState).toBe(WebSocket.OPEN);
    alive.terminate();
  });

  test("that sends more than a body may have is closed", async () => {
    const house = await open();
    const socket = await opened(bare(house));
    const closed = closeOf(socket);
    socket.send("x".repeat(limits.BODY_BYTES_MAX + 1));
    await expect(closed).resolves.toMatchObject({ code: 1009 });
  });

  test("that sends bytes is closed: messages are text", async () => {
    const house = await open();
    const socket = await opened(bare(house));
    const closed = closeOf(socket);
    socket.send(Buffer.from(hello));
    await expect(closed).resolves.toEqual({ code: 1003, reason: "messages are text" });
  });

  test("that is asked for without a key is refused in our own form", async () => {
    const house = await open();
    const { "sec-websocket-key": _, ...headers } = UPGRADE;
    const met = await knock(house.port, { method: "GET", headers: { ...headers, ...bearer("ann") } });
    expect([met.status, JSON.parse(met.body).error.code]).toEqual([400, "invalid"]);
    expect(house.open.count).toBe(0);
  });

  test("is told when the server shuts down, and nobody comes in after it", async () => {
    const house = await open();
    const socket = await opened(bare(house));
    const closed = closeOf(socket);
    const drained = house.handler.drain();
    const met = await knock(house.port, { method: "GET", headers: { ...UPGRADE, ...bearer("ann") } });
    expect([met.status, JSON.parse(met.body).error.code]).toEqual([503, "shutting_down"]);
    await expect(closed).resolves.toMatchObject({ code: 1001 });
    await drained;
  });
});

describe("over HTTP", () => {
  test("a connection that nobody reads from or asks is closed, and one that is read from is not", async () => {
    const house = await open();
    const left = await knock(house.port, {
      ...{ method: "POST", headers: { "content-type": "application/json", ...bearer("ann") }, body: hello },
    });
    const read = overHttp(house);
    await enter(read);
    expect(house.open.count).toBe(2);
    await house.clock.advance(limits.ACP_IDLE_MS + limits.STREAM_CHECK_MS);
    expect(house.open.count).toBe(1);
    const id = String(left.headers["acp-connection-id"]);
    const met = await knock(house.port, { method: "DELETE", headers: { "acp-connection-id": id, ...bearer("ann") } });
    expect(met.status).toBe(404);
    await expect(read.request("session/list", {})).resolves.toHaveProperty("result");
    await read.close();
  });

  test("a body that is too large is refused", async () => {
    const house = await open();
    const met = await knock(house.port, {
      ...{ method: "POST", headers: { "content-type": "application/json", ...bearer("ann") } },
      body: "x".repeat(limits.BODY_BYTES_MAX + 1),
    });
    expect([met.status, JSON.parse(met.body).error.code]).toEqual([413, "invalid"]);
  });

  test.each([
    ["no JSON", "{", 400, "invalid"],
    ["an id that is none", '{"jsonrpc":"2.0","id":{},"method":"initialize","params":{}}', 400, "invalid"],
    ["no initialize", '{"jsonrpc":"2.0","id":1,"method":"session/list"}', 400, "invalid"],
  ])("what begins with %s opens nothing", async (_, body, status, code) => {
    const house = await open();
    const headers = { "content-type": "application/json", ...bearer("ann") };
    const met = await knock(house.port, { method: "POST", headers, body });
    expect([met.status, JSON.parse(met.body).error.code]).toEqual([status, code]);
    await house.open.becomes(0);
  });

  test("sessions of one connection are not counted among the streams of its token, and each is told", async () => {
    const house = await open({}, { streamsPerToken: 1 });
    const client = overHttp(house);
    for (const session of [await enter(client), await another(client), await another(client)]) {
      expect((await prompt(client, session, "tea")).result).toMatchObject({ stopReason: "end_turn" });
    }
    const headers = { "content-type": "application/json", ...bearer("ann") };
    const second = await knock(house.port, { method: "POST", headers, body: hello });
    expect([second.status, JSON.parse(second.body).error.code]).toEqual([429, "overloaded"]);
    await client.close();
    await house.open.becomes(0);
    const again = overHttp(house);
    await prompt(again, await enter(again), "tea");
    await again.close();
  });
});
