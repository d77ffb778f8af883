// G35: whoever may not ask does not get in at `/acp`, by none of its ways, under the attacks that every route is under.
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

let house: TestAcpServer;
let host: string;
/** Of a connection of ann's. */
let connection: string;

async function openAll(): Promise<void> {
  house = await openTestAcpServer();
  house.tokens.set("blind", actor("blind", { scopes: new Set(["prompt", "cancel", "approve"]) }));
  host = `127.0.0.1:${house.port}`;
  const hello = await knock(house.port, WAYS.POST(bearer("ann")));
  connection = String(hello.headers["acp-connection-id"]);
  house.audit.splice(0);
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
const STRANGER = { status: 401, code: "unauthenticated" };

const ATTACKS: Readonly<Record<string, Attack>> = {
  "no token": (way) => ({ knock: way({}), expected: STRANGER }),
  "a bad token": (way) => ({ knock: way(bearer("guess")), expected: STRANGER }),
  "a token without the scope": (way) => ({ knock: way(bearer("blind")), expected: FORBIDDEN }),
  "an evil Host": (way) => ({
    knock: way({ ...bearer("ann"), host: `evil.example:${house.port}` }),
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
  afterAll(() => house.close());

  describe.each(Object.entries(WAYS))("%s with", (name, way) => {
    test.each(Object.entries(ATTACKS))("%s", async (_, attack) => {
      house.audit.splice(0);
      const { knock: given, expected } = attack(way);
      const met = await knock(house.port, given);
      expect({ status: met.status, code: codeOf(met) }).toEqual(expected);
      expect(met.headers["x-request-id"]).toMatch(/^req_/);
      expect(met.headers["x-content-type-options"]).toBe("nosniff");
      expect(house.open.count).toBe(1);
      // Reading changes nothing, so it is not written down; everything else is.
      const noted = name === "GET" ? [] : [expect.objectContaining({ action: "acp", answer: "refused" })];
      expect(house.audit).toEqual(noted);
    });
  });

  test("a body that is not said to be JSON", async () => {
    const met = await knock(house.port, WAYS.POST({ ...bearer("ann"), "content-type": "text/plain" }));
    expect([met.status, codeOf(met)]).toEqual([415, "invalid"]);
  });

  test("a method that it has no use for, and says which it has", async () => {
    const met = await knock(house.port, { method: "PATCH", headers: { ...json, ...bearer("ann") }, body: "{}" });
    expect([met.status, met.headers.allow]).toEqual([405, "GET, POST, DELETE, OPTIONS"]);
  });

  test.each(["POST", "GET", "DELETE"] as const)("%s of a connection that is another token's", async (method) => {
    const given = WAYS[method]({ ...bearer("ben"), "acp-connection-id": connection });
    const met = await knock(house.port, given);
    const none = await knock(house.port, WAYS[method]({ ...bearer("ben"), "acp-connection-id": "none" }));
    expect([met.status, codeOf(met)]).toEqual([404, "not_found"]);
    // In the very words that are said of one that does not exist.
    expect(JSON.parse(met.body).error.message).toBe(JSON.parse(none.body).error.message);
    expect(house.open.count).toBe(1);
  });

  test("a connection to its own token, once that may do less than when it was opened", async () => {
    house.tokens.set("ann", actor("ann", { scopes: new Set(["read"]) }));
    const met = await knock(house.port, WAYS.GET(bearer("ann")));
    house.tokens.set("ann", actor("ann"));
    expect(met.status).toBe(404);
  });
});

describe("the attacks would be noticed", () => {
  beforeEach(openAll);
  afterEach(() => house.close());

  test.each([
    ["POST", 200],
    ["GET", 200],
    ["DELETE", 202],
    ["WebSocket", 101],
  ] as const)("%s gets in with a valid token", async (way, status) => {
    const met = await knock(house.port, WAYS[way]({ ...bearer("ann"), host }));
    expect(met.status).toBe(status);
  });

  test("a page of the same origin gets a WebSocket, by a token among its subprotocols", async () => {
    const met = await knock(
      house.port,
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
  afterEach(() => house.close());

  const offering = (protocols: string, headers = {}): Promise<Met> =>
    knock(house.port, WAYS.WebSocket({ ...headers, "sec-websocket-protocol": protocols }));

  test("lets in, and is never said back", async () => {
    const alone = await offering("belay.bearer.ann");
    expect(alone.status).toBe(101);
    expect(JSON.stringify(alone.headers)).not.toContain("ann");
  });

  test.each([
    ["that is nobody's", "belay.acp, belay.bearer.guess", {}],
    ["that is empty", "belay.acp, belay.bearer.", {}],
    ["beside another", "belay.bearer.ann, belay.bearer.ben", {}],
    ["beside a header", "belay.bearer.ann", bearer("ann")],
  ])("does not, %s", async (_, protocols, headers) => {
    const met = await offering(protocols, headers);
    expect([met.status, codeOf(met)]).toEqual([401, "unauthenticated"]);
  });

  test("counts nowhere but there", async () => {
    const met = await knock(
      house.port,
      WAYS.POST({ "sec-websocket-protocol": "belay.bearer.ann", "content-type": "application/json" }),
    );
    expect(met.status).toBe(401);
  });

  test("is counted like every other guess: the eleventh is told to wait", async () => {
    for (let guess = 0; guess < 10; guess += 1) await offering(`belay.bearer.guess${guess}`);
    const met = await offering("belay.bearer.guess");
    expect([met.status, codeOf(met)]).toEqual([429, "unauthenticated"]);
    expect((await offering("belay.bearer.ann")).status).toBe(101);
  });
});

describe("tenants", () => {
  beforeEach(openAll);
  afterEach(() => house.close());

  const client = (token: string) =>
    talker(createWebSocketStream(`ws://${host}/acp`, { WebSocket, headers: bearer(token) }));

  test("one has sessions of its own, and another's are not there", async () => {
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

  test("a token that may only look is told so when it prompts", async () => {
    house.tokens.set("viewer", actor("viewer", { scopes: new Set(["read"]) }));
    const viewer = client("viewer");
    await viewer.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
    const met = await viewer.request("session/new", { cwd: "/", mcpServers: [] });
    expect(met.error).toMatchObject({ data: { code: "forbidden" } });
    await viewer.close();
  });

  test("the id of a WebSocket's connection means nothing over HTTP", async () => {
    const socket = new WebSocket(`ws://${host}/acp`, { headers: bearer("ann") });
    let id = "";
    socket.once("upgrade", (response) => {
      id = String(response.headers["acp-connection-id"]);
    });
    await opened(socket);
    const met = await knock(house.port, WAYS.GET({ ...bearer("ann"), "acp-connection-id": id }));
    expect([id.length, met.status]).toEqual([36, 404]);
    socket.terminate();
  });
});
