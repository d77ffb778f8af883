import { mkdtemp, rm } from "node:fs/promises";
import { globalAgent } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type ScriptedServer, scriptedServer } from "../../../test/fixtures/scripted-server.ts";
import { type BelayClient, connectBelay } from "../belay-client.ts";

async function overSocket(act: (server: ScriptedServer, client: BelayClient) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "belay-client-"));
  const socket = join(folder, "s");
  const server = await scriptedServer({ socket });
  try {
    await using client = await connectBelay({ socket, patienceMs: 0 });
    await act(server, client);
  } finally {
    await server.die();
    await rm(folder, { recursive: true });
  }
}

test("all requests go over a Unix socket, without a token", () =>
  overSocket(async (server, client) => {
    const made = client.createSession({ title: "né €😀" });
    const asked = await server.next("POST /v1/sessions");
    expect(asked.body).toEqual({ title: "né €😀" });
    expect([asked.header("authorization"), asked.header("host")]).toEqual([undefined, "localhost"]);
    asked.json(201, { id: "ses_1" });
    expect((await made).id).toBe("ses_1");
  }));

test("a body is sent with its length, including that of a DELETE", () =>
  overSocket(async (server, client) => {
    const closed = client.session("ses_1").close({ reason: "né" });
    const asked = await server.next("DELETE /v1/sessions/ses_1");
    expect(asked.body).toEqual({ reason: "né" });
    asked.json(200, { kind: "idle", runs: [] });
    expect(await closed).toMatchObject({ kind: "idle" });
  }));

test("streams are read as they arrive, and leaving closes the connection", () =>
  overSocket(async (server, client) => {
    const events = client.session("ses_1").events();
    const first = events.next();
    const stream = (await server.next("GET /v1/sessions/ses_1/events")).stream();
    stream.events(1);
    expect((await first).value).toMatchObject({ seq: 1 });
    stream.events(2);
    expect((await events.next()).value).toMatchObject({ seq: 2 });
    await events.return();
    await stream.left();
  }));

test("a connection lost in the head, in the body and in a stream rejects, and is never uncaught", () =>
  overSocket(async (server, client) => {
    const head = client.status();
    await (await server.next("GET /v1/status")).cut();
    await expect(head).rejects.toMatchObject({ code: "disconnected" });
    const stream = client.session("ses_1").events().next();
    const open = (await server.next("GET /v1/sessions/ses_1/events")).stream();
    open.say("data: half");
    await open.cut();
    await expect(stream).rejects.toMatchObject({ code: "disconnected" });
  }));

test("a socket without a listener is named in the error", async () => {
  const socket = join(tmpdir(), "belay-nobody-is-here");
  await expect(connectBelay({ socket, patienceMs: 0 })).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining(socket),
  });
});

test("a reused socket that fails between two requests does not end the program", () =>
  overSocket(async (server, client) => {
    for (const key of ["one", "two"]) {
      const listed = client.sessions();
      (await server.next("GET /v1/sessions")).json(200, { sessions: [{ id: `ses_${key}` }] });
      await listed;
    }
    const [free] = Object.values(globalAgent.freeSockets).flatMap((sockets) => sockets ?? []);
    expect(free?.listeners("error").length).toBeLessThan(4);
    // Node itself adds one listener.
    expect(() => free?.emit("error", new Error("given up"))).not.toThrow();
    expect(() => free?.emit("error", new Error("given up"))).not.toThrow();
    expect(free).toBeDefined();
  }));
