// The bounds of all ACP connections together, and of what one of them holds, with a door that does as the test says.
import type { Stream } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import { plainRequest } from "../../../test/fixtures/plain-request.ts";
import { manualClock } from "../../testing/manual-clock.ts";
import { Guard } from "../auth/guard.ts";
import { ACP_CONNECTIONS_MAX, ACP_HELD_MAX } from "../limits.ts";
import { NO_LOG } from "../observer.ts";
import { type Actor, type HttpAnswer, TOKEN_SCOPES } from "../transport/http-exchange.ts";
import type { Visit } from "./acp-connection.ts";
import { AcpConnections } from "./acp-connections.ts";

const ann: Actor = { name: "ann", scopes: new Set(TOKEN_SCOPES), tenant: undefined };

/** Answers the first message, and reads no further. */
function once(stream: Stream): Visit {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const serve = async (): Promise<void> => {
    const { value } = await stream.readable.getReader().read();
    if (value === undefined || !("id" in value)) return resolve();
    await stream.writable.getWriter().write({ jsonrpc: "2.0", id: value.id, result: {} });
  };
  void serve().catch(() => resolve());
  return { closed, settled: () => Promise.resolve() };
}

/** The same, and is closed when its input is. */
function all(stream: Stream): Visit {
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

function open(door: (stream: Stream) => Visit): AcpConnections {
  const clock = manualClock();
  const guard = new Guard({ tokens: { verify: () => ann }, clock, streamsPerToken: 1e6 });
  return new AcpConnections({ clock, guard, log: NO_LOG, door: () => ({ connect: door }), changed: () => {} });
}

const send = (desk: AcpConnections, message: object, id?: string): Promise<HttpAnswer> =>
  desk.answer(
    plainRequest({
      ...{ method: "POST", target: "/acp", body: JSON.stringify({ jsonrpc: "2.0", ...message }) },
      headers: { "content-type": "application/json", ...(id === undefined ? {} : { "acp-connection-id": id }) },
    }),
    ann,
  );

const HELLO = { id: 1, method: "initialize", params: {} };

const begin = async (desk: AcpConnections): Promise<string> =>
  (await send(desk, HELLO)).headers["acp-connection-id"] ?? "";

describe("there are only so many", () => {
  test("connections, and one that ends makes room", async () => {
    const desk = open(all);
    const ids: string[] = [];
    for (let count = 0; count < ACP_CONNECTIONS_MAX; count += 1) ids.push(await begin(desk));
    await expect(send(desk, HELLO)).rejects.toMatchObject({ status: 429, code: "overloaded" });
    const headers = { "acp-connection-id": ids[0] ?? "" };
    await desk.answer(plainRequest({ method: "DELETE", target: "/acp", headers }), ann);
    await expect(begin(desk)).resolves.toMatch(/-/);
    expect(desk.count).toBe(ACP_CONNECTIONS_MAX);
    await desk.drain();
    expect(desk.count).toBe(0);
  });

  test("requests that wait on one of them; what stops something is taken also then", async () => {
    const desk = open(once);
    const id = await begin(desk);
    const waiting: Promise<unknown>[] = [];
    for (let count = 0; count < ACP_HELD_MAX; count += 1) {
      waiting.push(send(desk, { id: count + 2, method: "session/list", params: {} }, id).catch(() => {}));
    }
    await Promise.resolve();
    await expect(send(desk, { id: 99, method: "session/list", params: {} }, id)).rejects.toMatchObject({
      status: 429,
    });
    // Nobody reads here, so it waits as well; but it was not refused.
    let refused = false;
    const stop = send(desk, { method: "$/cancel_request", params: { requestId: 2 } }, id).catch((error) => {
      refused = error.status === 429;
    });
    const headers = { "acp-connection-id": id };
    await desk.answer(plainRequest({ method: "DELETE", target: "/acp", headers }), ann);
    await Promise.all([...waiting, stop]);
    expect(refused).toBe(false);
  });
});

test("whoever comes when it is closing is told so", async () => {
  const desk = open(all);
  await desk.drain();
  await expect(send(desk, HELLO)).rejects.toMatchObject({ code: "shutting_down" });
});
