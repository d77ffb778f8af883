// G35: `/acp` refuses the attacks that every route refuses, on all of its transports.
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  actor,
  bearer,
  enter,
  type Knock,
  knock,
  type Met,
  opened,
  openTestAcpServer,
  prompt,
  type TestAcpServer,
  talker,
  UPGRADE,
  WebSocket,
} from "../fixtures/acp-server.ts";

const HELLO = JSON.stringify({
  ...{ jsonrpc: "2.0", id: 1, method: "initialize" },
  params: { protocolVersion: 1, clientCapabilities: {} },
});

let server: TestAcpServer;
let host: string;
/** The id of a connection of the token `ann`. */
let connection: string;

async function openAll(): Promise<void> {
  server = await openTestAcpServer();
  server.tokens.set("blind", actor("blind", { scopes: new Set(["prompt", "cancel", "approve"]) }));
  host = `127.0.0.1:${server.port}`;
  const hello = await knock(server.port, WAYS.POST(bearer("ann")));
  connection = String(hello.headers["acp-connection-id"]);
  server.audit.splice(0);
}

type Way = (headers: Readonly<Record<string, string>>) => Knock;

const json = { "content-type": "application/json" };

const WAYS = {
  POST: (headers) => ({ method: "POST", headers: { ...json, ...headers }, body: HELLO }),
  GET: (headers) => ({
    ...{ method: "GET" },
    headers: { accept: "text/event-stream", "acp-connection-id": connection, ...headers },
  }),
  DELETE: (headers) => ({ method: "DELETE", headers: { "acp-connection-id": connection, ...headers } }),
  WebSocket: (headers) => ({ method: "GET", headers: { ...UPGRADE, ...headers } }),
} as const satisfies Readonly<Record<string, Way>>;

type Attack = (way: Way) => { readonly knock: Knock; readonly expected: { status: number; code: string } };

const FORBIDDEN = { status: 403, code: "forbidden" };
const UNAUTHENTICATED = { status: 401, code: "unauthenticated" };

const ATTACKS: Readonly<Record<string, Attack>> = {
  "no token": (way) => ({ knock: way({}), expected: UNAUTHENTICATED }),
  "a bad token": (way) => ({ knock: way(bearer("guess")), expected: UNAUTHENTICATED }),
  "a token without the scope": (way) => ({ knock: way(bearer("blind")), expected: FORBIDDEN }),
  "an evil Host": (way) => ({
    knock: way({ ...bearer("ann"), host: `evil.example:${server.port}` }),
    expected: { status: 421, code: "forbidden" },
  }),
  "an evil Origin": (way) => ({
    knock: way({ ...bearer("ann"), origin: "https://evil.example" }),
    expected: FORBIDDEN,
  }),
  "Origin: null": (way) => ({ knock: way({ ...bearer("ann"), origin: "null" }), expected: FORBIDDEN }),
  "Sec-Fetch-Site: cross-site": (way) => ({
    knock: way({ ...bearer("ann"), "sec-fetch-site": "cross-site" }),
    expected: FORBIDDEN,
  }),
  "a token in the query": (way) => ({
    knock: { ...way({}), path: "/acp?token=ann" },
    expected: { status: 400, code: "invalid" },
  }),
};

const codeOf = ({ body }: Met): unknown => JSON.parse(body).error?.code;

describe("G35: /acp refuses", () => {
  beforeAll(openAll);
  afterAll(() => server.close());

  describe.each(Object.entries(WAYS))("%s with", (name, way) => {
    test.each(Object.entries(ATTACKS))("%s", async (_, attack) => {
      server.audit.splice(0);
      const { knock: given, expected } = attack(way);
      const met = await knock(server.port, given);
      expect({ status: met.status, code: codeOf(met) }).toEqual(expected);
      expect(met.headers["x-request-id"]).toMatch(/^req_/);
      expect(met.headers["x-content-type-options"]).toBe("nosniff");
      expect(server.open.count).toBe(1);
      // Reads are not recorded in the audit trail; everything else is.
      const noted = name === "GET" ? [] : [expect.objectContaining({ action: "acp", answer: "refused" })];
      expect(server.audit).toEqual(noted);
    });
  });

  test("a body with another content type than JSON", async () => {
    const met = await knock(server.port, WAYS.POST({ ...bearer("ann"), "content-type": "text/plain" }));
    expect([met.status, codeOf(met)]).toEqual([415, "invalid"]);
  });

  test("an unsupported method, with the supported ones in Allow", async () => {
    const met = await knock(server.port, { method: "PATCH", headers: { ...json, ...bearer("ann") }, body: "{}" });
    expect([met.status, met.headers.allow]).toEqual([405, "GET, POST, DELETE, OPTIONS"]);
  });

  test.each(["POST", "GET", "DELETE"] as const)("%s on a connection of another token", async (method) => {
    const given = WAYS[method]({ ...bearer("ben"), "acp-connection-id": connection });
    const met = await knock(server.port, given);
    const none = await knock(server.port, WAYS[method]({ ...bearer("ben"), "acp-connection-id": "none" }));
    expect([met.status, codeOf(met)]).toEqual([404, "not_found"]);
    // The same message as for a connection that does not exist.
    expect(JSON.parse(met.body).error.message).toBe(JSON.parse(none.body).error.message);
    expect(server.open.count).toBe(1);
  });

  test("a connection to its own token, once the token has fewer scopes than when it was opened", async () => {
    server.tokens.set("ann", actor("ann", { scopes: new Set(["read"]) }));
    const met = await knock(server.port, WAYS.GET(bearer("ann")));
    server.tokens.set("ann", actor("ann"));
    expect(met.status).toBe(404);
  });
});

describe("without the attack", () => {
  beforeEach(openAll);
  afterEach(() => server.close());

  test.each([
    ["POST", 200],
    ["GET", 200],
    ["DELETE", 202],
    ["WebSocket", 101],
  ] as const)("%s is admitted with a valid token", async (way, status) => {
    const met = await knock(server.port, WAYS[way]({ ...bearer("ann"), host }));
    expect(met.status).toBe(status);
  });

  test("a page of the same origin gets a WebSocket with a token among its subprotocols", async () => {
    const met = await knock(
      server.port,
      WAYS.WebSocket({
        ...{ origin: `http://${host}`, "sec-fetch-site": "same-origin" },
        "sec-websocket-protocol": "belay.acp, belay.bearer.ann",
      }),
    );
    expect(met.status).toBe(101);
    expect(met.headers["sec-websocket-protocol"]).toBe("belay.acp");
  });
});

describe("a token among the subprotocols of a WebSocket", () => {
  beforeEach(openAll);
  afterEach(() => server.close());

  const offering = (protocols: string, headers = {}): Promise<Met> =>
    knock(server.port, WAYS.WebSocket({ ...headers, "sec-websocket-protocol": protocols }));

  test("is accepted, and never sent back", async () => {
    const alone = await offering("belay.bearer.ann");
    expect(alone.status).toBe(101);
    expect(JSON.stringify(alone.headers)).not.toContain("ann");
  });

  test.each([
    ["that is invalid", "belay.acp, belay.bearer.guess", {}],
    ["that is empty", "belay.acp, belay.bearer.", {}],
    ["beside another", "belay.bearer.ann, belay.bearer.ben", {}],
    ["beside a header", "belay.bearer.ann", bearer("ann")],
  ])("%s is not accepted", async (_, protocols, headers) => {
    const met = await offering(protocols, headers);
    expect([met.status, codeOf(met)]).toEqual([401, "unauthenticated"]);
  });

  test("is not accepted in an ordinary request", async () => {
    const met = await knock(
      server.port,
      WAYS.POST({ "sec-websocket-protocol": "belay.bearer.ann", "content-type": "application/json" }),
    );
    expect(met.status).toBe(401);
  });

  test("counts like every other guess: the eleventh gets 429", async () => {
    for (let guess = 0; guess < 10; guess += 1) await offering(`belay.bearer.guess${guess}`);
    const met = await offering("belay.bearer.guess");
    expect([met.status, codeOf(met)]).toEqual([429, "unauthenticated"]);
    expect((await offering("belay.bearer.ann")).status).toBe(101);
  });
});

describe("tenants", () => {
  beforeEach(openAll);
  afterEach(() => server.close());

  const client = (token: string) =>
    talker(createWebSocketStream(`ws://${host}/acp`, { WebSocket, headers: bearer(token) }));

  test("see their own sessions, and no session of another tenant", async () => {
    const acme = client("acme");
    const session = await enter(acme);
    expect(session).toMatch(/^ses_acme\./);
    await prompt(acme, session, "tea");
    const other = client("other");
    await enter(other);
    const listed = await other.request("session/list", {});
    expect(JSON.stringify(listed.result)).not.toContain(session);
    for (const method of ["session/load", "session/resume"]) {
      const met = await other.request(method, { sessionId: session, cwd: "/", mcpServers: [] });
      expect(met.error?.code).toBe(-32002);
    }
    const met = await prompt(other, session, "tea");
    expect(met.error?.code).toBe(-32002);
    await Promise.all([acme.close(), other.close()]);
  });

  test("with a read-only token get an error when they create a session", async () => {
    server.tokens.set("viewer", actor("viewer", { scopes: new Set(["read"]) }));
    const viewer = client("viewer");
    await viewer.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
    const met = await viewer.request("session/new", { cwd: "/", mcpServers: [] });
    expect(met.error).toMatchObject({ data: { code: "forbidden" } });
    await viewer.close();
  });

  test("cannot use the id of a WebSocket connection over HTTP", async () => {
    const socket = new WebSocket(`ws://${host}/acp`, { headers: bearer("ann") });
    let id = "";
    socket.once("upgrade", (response) => {
      id = String(response.headers["acp-connection-id"]);
    });
    await opened(socket);
    const met = await knock(server.port, WAYS.GET({ ...bearer("ann"), "acp-connection-id": id }));
    expect([id.length, met.status]).toEqual([36, 404]);
    socket.terminate();
  });
});
