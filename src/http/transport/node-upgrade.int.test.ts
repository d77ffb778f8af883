// Upgrade requests: they become WebSockets, or are answered like any other request and closed.
import { request } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { systemClock } from "../../system/system-clock.ts";
import { Gate } from "../../testing/gate.ts";
import { Denial } from "../auth/guard-denial.ts";
import { type HttpAnswer, SWITCHED } from "./http-exchange.ts";
import { listen } from "./listener.ts";
import { type Handle, NodeServer } from "./node-server.ts";

const servers = new Set<NodeServer>();
const troubles: unknown[] = [];

afterEach(async () => {
  await Promise.all([...servers].map((server) => server.close(0)));
  servers.clear();
  expect(troubles.splice(0)).toEqual([]);
});

async function serve(handle: Handle): Promise<{ readonly node: NodeServer; readonly port: number }> {
  const onTrouble = (thrown: unknown): void => void troubles.push(thrown);
  const node = new NodeServer({ handle, clock: systemClock, via: "tcp", onTrouble });
  await new Promise<void>((resolve) => node.server.listen(0, "127.0.0.1", resolve));
  servers.add(node);
  return { node, port: (node.server.address() as AddressInfo).port };
}

const UPGRADE = {
  ...{ connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" },
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
};

interface Met {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

function ask(port: number, headers: Readonly<Record<string, string>>, path = "/a?b=1"): Promise<Met> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path, headers, agent: false });
    sent.once("upgrade", ({ statusCode = 0, headers }, socket) => {
      socket.destroy();
      resolve({ status: statusCode, headers, body: "" });
    });
    sent.once("response", async (response) => {
      const body = (await Array.fromAsync(response.setEncoding("utf8"))).join("");
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
    });
    sent.once("error", reject).end();
  });
}

const accepting: Handle = async ({ upgrade }) => {
  await upgrade?.accept({ "x-test": "yes" });
  return SWITCHED;
};

const text = (body: string): HttpAnswer => ({ status: 200, headers: { "content-type": "text/plain" }, body });

describe("a WebSocket that is accepted", () => {
  test("carries messages in both directions, and has the headers of its acceptance", async () => {
    const { port } = await serve(async ({ upgrade }) => {
      const socket = await upgrade?.accept({ "x-test": "yes" });
      socket?.on("message", (data) => socket.send(`echo ${data}`));
      return SWITCHED;
    });
    const client = new WebSocket(`ws://127.0.0.1:${port}/`);
    const head = new Promise((resolve) => client.once("upgrade", ({ headers }) => resolve(headers["x-test"])));
    client.once("open", () => client.send("tea"));
    await expect(new Promise((resolve) => client.once("message", (data) => resolve(String(data))))).resolves.toBe(
      "echo tea",
    );
    await expect(head).resolves.toBe("yes");
    client.terminate();
  });

  test("is closed when the server closes", async () => {
    const { node, port } = await serve(accepting);
    const client = new WebSocket(`ws://127.0.0.1:${port}/`);
    await new Promise((resolve) => client.once("open", resolve));
    expect(node.connections).toBe(1);
    const closed = new Promise((resolve) => client.once("close", resolve));
    await node.close(0);
    await expect(closed).resolves.toBe(1006);
    expect(node.connections).toBe(0);
  });

  test.each([
    ["belay.acp", "belay.acp"],
    ["belay.bearer.secret, belay.acp", "belay.acp"],
    ["acp", "acp"],
    ["belay.bearer.secret", undefined],
    ["mqtt", undefined],
  ])("with the subprotocols %s uses %s", async (offered, spoken) => {
    const { port } = await serve(accepting);
    const met = await ask(port, { ...UPGRADE, "sec-websocket-protocol": offered });
    expect([met.status, met.headers["sec-websocket-protocol"]]).toEqual([101, spoken]);
  });
});

describe("an upgrade that is refused", () => {
  test("gets an error, and its connection is closed", async () => {
    const { port } = await serve(async () => {
      throw new Denial(403, "forbidden", "Not you.");
    });
    const met = await ask(port, UPGRADE);
    expect(met.status).toBe(403);
    expect(JSON.parse(met.body).error).toMatchObject({ code: "forbidden", message: "Not you." });
    expect(met.headers).toMatchObject({ connection: "close", "x-content-type-options": "nosniff" });
    expect(met.headers["x-request-id"]).toMatch(/^req_/);
  });

  test.each([
    ["without a key", { "sec-websocket-key": "" }],
    ["with an unsupported version", { "sec-websocket-version": "7" }],
    ["with subprotocols that are none", { "sec-websocket-protocol": "a,,b" }],
  ])("%s is invalid", async (_, headers) => {
    const { port } = await serve(accepting);
    const met = await ask(port, { ...UPGRADE, ...headers });
    expect([met.status, JSON.parse(met.body).error.code]).toEqual([400, "invalid"]);
  });

  test("gets the ordinary response of a route without WebSockets", async () => {
    const { port } = await serve(async ({ path, query }) => text(`${path} ${query.get("b")}`));
    const met = await ask(port, UPGRADE);
    expect([met.status, met.body, met.headers.connection]).toEqual([200, "/a 1", "close"]);
  });

  test("gets no event stream", async () => {
    let left = false;
    const body = {
      next: () => new Promise<never>(() => {}),
      return: async () => {
        left = true;
        return { done: true as const, value: undefined };
      },
    };
    const { port } = await serve(async () => ({ status: 200, headers: {}, body }));
    const met = await ask(port, UPGRADE);
    expect([met.status, JSON.parse(met.body).error.code, left]).toEqual([400, "invalid", true]);
  });

  test("has its URL checked like every other request", async () => {
    const { port } = await serve(accepting);
    const met = await ask(port, UPGRADE, `/${"a".repeat(9000)}`);
    expect(met.status).toBe(414);
  });

  test("because its client has disconnected leaves nothing behind", async () => {
    const arrived = new Gate();
    const decided = new Gate();
    const { node, port } = await serve(async (given) => {
      arrived.open();
      await decided.opened;
      return accepting(given);
    });
    const gone = new Promise((resolve) => {
      node.server.once("connection", (socket: Socket) => socket.once("close", resolve));
    });
    const sent = request({ host: "127.0.0.1", port, headers: UPGRADE, agent: false });
    sent.on("error", () => {}).end();
    await arrived.opened;
    sent.destroy();
    decided.open();
    await gone;
    expect(node.connections).toBe(0);
  });
});

test("an upgrade to another protocol is ignored, and the request gets an ordinary response", async () => {
  const { port } = await serve(async (given) => text(`${given.upgrade} ${await given.body(100)}`));
  const headers = { connection: "Upgrade, HTTP2-Settings", upgrade: "h2c", "http2-settings": "AAMAAABk" };
  const answer = await fetchAs(port, headers, "tea");
  expect(answer).toBe("undefined tea");
});

function fetchAs(port: number, headers: Readonly<Record<string, string>>, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, method: "POST", headers, agent: false });
    sent.once("response", async (response) => resolve((await Array.fromAsync(response.setEncoding("utf8"))).join("")));
    sent.once("error", reject).end(body);
  });
}

test("G35: behind a proxy, a request that bypasses the proxy gets no WebSocket", async () => {
  const secret = "a secret of the proxy and the server";
  const listener = await listen(accepting, {
    ...{ place: { kind: "tcp", trustedProxy: { secret } }, clock: systemClock },
  });
  const { address } = listener;
  const port = address.kind === "tcp" ? address.port : 0;
  const past = await ask(port, UPGRADE);
  const through = await ask(port, { ...UPGRADE, "x-belay-proxy": secret });
  expect([past.status, through.status]).toEqual([403, 101]);
  await listener.close({ limitMs: 0 });
});
