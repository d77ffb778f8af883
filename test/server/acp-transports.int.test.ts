// ACP on the server over a WebSocket, over HTTP, over the private socket, and mounted in another server.
import type { Stream } from "@agentclientprotocol/sdk";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import { afterEach, describe, expect, test } from "vitest";
import { fetchBelay } from "../../src/http/serve.ts";
import {
  actor,
  bearer,
  enter,
  openTestAcpServer,
  prompt,
  type TestAcpServer,
  talker,
  WebSocket,
} from "../fixtures/acp-server.ts";
import { gate, openTestBelay, waits } from "../fixtures/belay.ts";

const servers: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of servers.splice(0)) await one.close();
});

async function open(...given: Parameters<typeof openTestAcpServer>): Promise<TestAcpServer> {
  const server = await openTestAcpServer(...given);
  servers.push(server);
  return server;
}

type Way = (server: TestAcpServer, token?: string) => Stream;

const WAYS = {
  WebSocket: ({ port }, token = "ann") =>
    createWebSocketStream(`ws://127.0.0.1:${port}/acp`, { WebSocket, headers: bearer(token) }),
  HTTP: ({ port }, token = "ann") => createHttpStream(`http://127.0.0.1:${port}/acp`, { headers: bearer(token) }),
  "the private socket": ({ socket }) => createWebSocketStream(`ws+unix://${socket}:/acp`, { WebSocket }),
} as const satisfies Readonly<Record<string, Way>>;

/** The options of a permission request. */
const optionsOf = (request: object): readonly { readonly optionId: string; readonly kind: string }[] =>
  (request as { params: { options: [] } }).params.options;

const isUpdate = (message: object): boolean => "method" in message && message.method === "session/update";

describe.each(Object.entries(WAYS))("over %s", (_, way) => {
  test.each([1, 2])("in version %i a prompt is answered after its updates", async (version) => {
    const server = await open({ tea: () => "A cup of it." });
    const client = talker(way(server));
    const session = await enter(client, version);
    const answer = await prompt(client, session, "tea");
    expect(answer.error).toBeUndefined();
    // In version 2 a prompt is answered when it is accepted, and an update reports its end.
    if (version === 1) {
      expect(answer.result).toMatchObject({ stopReason: "end_turn" });
      expect(JSON.stringify(client.told.filter(isUpdate))).toContain("A cup of it.");
    } else {
      const idle = await client.heard((one) => JSON.stringify(one).includes('"state":"idle"'));
      expect(JSON.stringify(idle)).toContain("end_turn");
      expect(JSON.stringify(client.told.slice(0, client.told.indexOf(idle)))).toContain("A cup of it.");
    }
    await client.close();
  });

  test("G32: a client that disconnects stops nothing", async () => {
    const go = gate();
    const server = await open({ tea: async () => go.passed.then(() => "done") });
    const client = talker(way(server));
    const session = await enter(client);
    void prompt(client, session, "tea");
    await server.began("tea");
    expect(server.open.count).toBe(1);
    await client.close();
    await client.ended;
    go.open();
    const [run] = await server.belay.session(session).runs();
    const { outcome } = await server.belay.run(run?.id ?? "");
    await expect(outcome).resolves.toMatchObject({ kind: "completed" });
  });

  test("a shutdown answers prompts first, and then closes the connection", async () => {
    const server = await open({ tea: waits });
    const client = talker(way(server));
    const session = await enter(client);
    const answer = prompt(client, session, "tea");
    await server.began("tea");
    servers.splice(0);
    await server.close();
    await expect(answer).resolves.toMatchObject({ result: { stopReason: "cancelled" } });
    await client.ended;
    expect(server.open.count).toBe(0);
  });

  test("a client gets permission requests, and its answers count", async () => {
    const server = await open({
      tea: async (turn) => (await turn.call("brew", {}, () => "hot", { approval: true })).kind,
    });
    const client = talker(way(server));
    const session = await enter(client);
    const answer = prompt(client, session, "tea");
    const request = await client.heard((one) => "method" in one && one.method === "session/request_permission");
    const [allow] = optionsOf(request).filter(({ kind }) => kind === "allow_once");
    await client.reply(request, { outcome: { outcome: "selected", optionId: allow?.optionId } });
    await expect(answer).resolves.toMatchObject({ result: { stopReason: "end_turn" } });
    expect(JSON.stringify(client.told)).toContain('"completed"');
    await client.close();
  });

  test("control requests are in the audit trail, with their actor", async () => {
    const server = await open();
    const client = talker(way(server));
    const session = await enter(client);
    await prompt(client, session, "tea");
    const name = way === WAYS["the private socket"] ? "local" : "ann";
    expect(server.audit).toContainEqual(
      expect.objectContaining({ actor: name, via: "acp", target: session, answer: expect.any(String) }),
    );
    await client.close();
  });
});

describe("ACP", () => {
  test("can load a session over another connection than its first one", async () => {
    const server = await open({ tea: () => "A cup of it." });
    const first = talker(WAYS.HTTP(server));
    const session = await enter(first);
    await prompt(first, session, "tea");
    const second = talker(WAYS.WebSocket(server));
    await second.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
    const loaded = await second.request("session/load", { sessionId: session, cwd: "/", mcpServers: [] });
    expect(loaded.error).toBeUndefined();
    expect(JSON.stringify(second.told)).toContain("A cup of it.");
    await Promise.all([first.close(), second.close()]);
  });

  test("mounted in another server works over HTTP", async () => {
    const { belay } = await openTestBelay({ tea: () => "A cup of it." }, { directories: "any" });
    const mounted = fetchBelay(belay, { tokens: () => actor("ann") });
    const client = talker(
      createHttpStream("http://localhost/acp", {
        headers: bearer("ann"),
        fetch: (input, init) => mounted.fetch(new Request(input, init)),
      }),
    );
    const session = await enter(client);
    await expect(prompt(client, session, "tea")).resolves.toMatchObject({ result: { stopReason: "end_turn" } });
    await client.close();
    await mounted.close();
    await belay.close({ mode: "cancel" });
  });
});
