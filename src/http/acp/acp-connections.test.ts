// The limits of all ACP connections together, and of the requests of one of them, with an agent that the test scripts.
import type { Stream } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import { plainRequest } from "../../../test/fixtures/plain-request.ts";
import { manualClock } from "../../testing/manual-clock.ts";
import { Guard } from "../auth/guard.ts";
import { ACP_CONNECTIONS_MAX, ACP_HELD_MAX } from "../limits.ts";
import { NO_LOG } from "../observer.ts";
import { type Actor, type HttpAnswer, TOKEN_SCOPES } from "../transport/http-exchange.ts";
import type { AgentConnection } from "./acp-connection.ts";
import { AcpConnections } from "./acp-connections.ts";

const ann: Actor = { name: "ann", scopes: new Set(TOKEN_SCOPES), tenant: undefined };

/** Answers the first message and reads no more. */
function once(stream: Stream): AgentConnection {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const serve = async (): Promise<void> => {
    const { value } = await stream.readable.getReader().read();
    if (value === undefined || !("id" in value)) return resolve();
    await stream.writable.getWriter().write({ jsonrpc: "2.0", id: value.id, result: {} });
  };
  void serve().catch(() => resolve());
  return { closed, settled: () => Promise.resolve() };
}

/** Answers all messages, and is closed when its input is. */
function all(stream: Stream): AgentConnection {
  const [reader, writer] = [stream.readable.getReader(), stream.writable.getWriter()];
  const serve = async (): Promise<void> => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      if ("id" in value && "method" in value) await writer.write({ jsonrpc: "2.0", id: value.id, result: {} });
    }
  };
  return { closed: serve().catch(() => {}), settled: () => Promise.resolve() };
}

function open(connect: (stream: Stream) => AgentConnection): AcpConnections {
  const clock = manualClock();
  const guard = new Guard({ tokens: { verify: () => ann }, clock, streamsPerToken: 1e6 });
  return new AcpConnections({ clock, guard, log: NO_LOG, agentFor: () => ({ connect }), onCountChanged: () => {} });
}

const send = (connections: AcpConnections, message: object, id?: string): Promise<HttpAnswer> =>
  connections.answer(
    plainRequest({
      ...{ method: "POST", target: "/acp", body: JSON.stringify({ jsonrpc: "2.0", ...message }) },
      headers: { "content-type": "application/json", ...(id === undefined ? {} : { "acp-connection-id": id }) },
    }),
    ann,
  );

const HELLO = { id: 1, method: "initialize", params: {} };

const begin = async (connections: AcpConnections): Promise<string> =>
  (await send(connections, HELLO)).headers["acp-connection-id"] ?? "";

describe("the maximum number", () => {
  test("of connections is enforced, and a connection that ends frees a place", async () => {
    const connections = open(all);
    const ids: string[] = [];
    for (let count = 0; count < ACP_CONNECTIONS_MAX; count += 1) ids.push(await begin(connections));
    await expect(send(connections, HELLO)).rejects.toMatchObject({ status: 429, code: "overloaded" });
    const headers = { "acp-connection-id": ids[0] ?? "" };
    await connections.answer(plainRequest({ method: "DELETE", target: "/acp", headers }), ann);
    await expect(begin(connections)).resolves.toMatch(/-/);
    expect(connections.count).toBe(ACP_CONNECTIONS_MAX);
    await connections.drain();
    expect(connections.count).toBe(0);
  });

  test("of open requests on one connection is enforced, except for stops", async () => {
    const connections = open(once);
    const id = await begin(connections);
    const waiting: Promise<unknown>[] = [];
    for (let count = 0; count < ACP_HELD_MAX; count += 1) {
      waiting.push(send(connections, { id: count + 2, method: "session/list", params: {} }, id).catch(() => {}));
    }
    await Promise.resolve();
    await expect(send(connections, { id: 99, method: "session/list", params: {} }, id)).rejects.toMatchObject({
      status: 429,
    });
    // The agent does not read here, so the stop waits, too; but it was not refused.
    let refused = false;
    const stop = send(connections, { method: "$/cancel_request", params: { requestId: 2 } }, id).catch((error) => {
      refused = error.status === 429;
    });
    const headers = { "acp-connection-id": id };
    await connections.answer(plainRequest({ method: "DELETE", target: "/acp", headers }), ann);
    await Promise.all([...waiting, stop]);
    expect(refused).toBe(false);
  });
});

test("a connection that is opened during a shutdown is refused as shutting_down", async () => {
  const connections = open(all);
  await connections.drain();
  await expect(send(connections, HELLO)).rejects.toMatchObject({ code: "shutting_down" });
});
