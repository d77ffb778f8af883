// The shared stream: who may open it, which requests it carries, and how it ends.
import { expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { connectBelay } from "../../src/client/belay-client.ts";
import { Guard } from "../../src/http/auth/guard.ts";
import { makeHandler } from "../../src/http/handler.ts";
import type { Actor } from "../../src/http/transport/http-exchange.ts";
import { listen } from "../../src/http/transport/listener.ts";
import { openBelay } from "../../src/sdk/belay.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import type { StreamDown, StreamUp } from "../../src/wire/stream-message.ts";
import { withConnections } from "../fixtures/few-connections.ts";
import { agent } from "../fixtures/obedient-agent.ts";
import { realServer } from "../fixtures/real-server.ts";

/** A server with tokens that the test can revoke, and a function that opens streams. */
async function served() {
  const belay = await openBelay({ agent, store: ":memory:", graceMs: 200 });
  const actors = new Map<string, Actor>([
    ["all", { name: "all", scopes: new Set(["read", "cancel"]), tenant: undefined }],
    ["acme", { name: "acme", scopes: new Set(["read", "cancel"]), tenant: "acme" }],
    ["reader", { name: "reader", scopes: new Set(["read"]), tenant: undefined }],
    ["prompter", { name: "prompter", scopes: new Set(["prompt"]), tenant: undefined }],
  ]);
  const guard = new Guard({ tokens: { verify: (secret) => actors.get(secret) }, clock: systemClock });
  const handler = makeHandler({ control: belay, guard, clock: systemClock, version: "0" });
  const listener = await listen(handler.handle, { place: { kind: "tcp" }, clock: systemClock });
  if (listener.address.kind !== "tcp") throw new Error("It is not on TCP.");
  const { port, served: place } = listener.address;
  guard.serves(place);
  onTestFinished(async () => {
    await handler.drain();
    await listener.close({ limitMs: 0 });
    await belay.close({ mode: "cancel" });
  });
  const open = (token: string, headers: Readonly<Record<string, string>> = {}) => opened(port, token, headers);
  return { belay, actors, open, handler };
}

/** The messages of one stream. `closed` resolves with the close code, `refused` with the status of the refusal. */
function opened(port: number, token: string, headers: Readonly<Record<string, string>>) {
  const protocols = ["belay.stream", `belay.bearer.${token}`];
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/stream`, protocols, { headers });
  const arrived: StreamDown[] = [];
  const waiting: { readonly is: (down: StreamDown) => boolean; readonly take: (down: StreamDown) => void }[] = [];
  socket.on("error", () => {});
  socket.on("message", (data) => {
    const down: StreamDown = JSON.parse(String(data));
    const index = waiting.findIndex(({ is }) => is(down));
    const [waiter] = index === -1 ? [] : waiting.splice(index, 1);
    if (waiter === undefined) arrived.push(down);
    else waiter.take(down);
  });
  const next = (is: (down: StreamDown) => boolean): Promise<StreamDown> => {
    const index = arrived.findIndex(is);
    const [found] = index === -1 ? [] : arrived.splice(index, 1);
    return found === undefined ? new Promise((take) => waiting.push({ is, take })) : Promise.resolve(found);
  };
  return {
    socket,
    next,
    ready: new Promise<string>((resolve) => socket.once("open", () => resolve(socket.protocol))),
    closed: new Promise<string>((resolve) => socket.once("close", (code, why) => resolve(`${code} ${why}`))),
    refused: new Promise<number>((resolve) =>
      socket.once("unexpected-response", (_, { statusCode = 0 }) => resolve(statusCode)),
    ),
    send: (up: StreamUp) => socket.send(JSON.stringify(up)),
    /** Sends a request, and returns status and text of the response. */
    async ask(id: string, method: "GET" | "POST", path: string, body?: object) {
      socket.send(JSON.stringify({ type: "request", id, method, path, body }));
      const down = await next((one) => (one.type === "answer" || one.type === "head") && one.id === id);
      if (down.type !== "answer" && down.type !== "head") throw new Error(down.type);
      return { status: down.head.status, text: down.type === "answer" ? down.text : "" };
    },
  };
}

test("G35: a stream needs a token that may read, and a page of an allowed origin", async () => {
  const { open } = await served();
  expect(await open("unknown").refused).toBe(401);
  expect(await open("prompter").refused).toBe(403);
  expect(await open("all", { origin: "https://evil.example" }).refused).toBe(403);
  expect(await open("all", { host: "evil.example" }).refused).toBe(421);
  // The token is never sent back.
  expect(await open("all").ready).toBe("belay.stream");
});

test("G35: each request of a stream has the tenant and the scopes of its token", async () => {
  const { belay, open } = await served();
  const own = await belay.createSession({ tenant: "acme" });
  const foreign = await belay.createSession();
  const tenant = open("acme");
  await tenant.ready;
  expect((await tenant.ask("1", "GET", `/v1/sessions/${own.id}/events`)).status).toBe(200);
  expect((await tenant.ask("2", "GET", `/v1/sessions/${foreign.id}/events`)).status).toBe(404);
  expect((await tenant.ask("3", "POST", `/v1/sessions/${foreign.id}/cancel`, {})).status).toBe(404);
  const reader = open("reader");
  await reader.ready;
  expect((await reader.ask("1", "POST", `/v1/sessions/${foreign.id}/cancel`, {})).status).toBe(403);
});

test("a stream carries requests that follow, wait or stop, and no others", async () => {
  const { belay, open } = await served();
  const session = await belay.createSession();
  const run = session.prompt("wait");
  const { runId } = await run.accepted;
  const stream = open("all");
  await stream.ready;
  expect((await stream.ask("1", "POST", `/v1/sessions/${session.id}/runs`, { prompt: "x" })).status).toBe(400);
  expect((await stream.ask("2", "GET", "/v1/stream")).status).toBe(400);
  expect((await stream.ask("3", "GET", "/v1/status")).status).toBe(400);
  const outcome = stream.ask("4", "GET", `/v1/runs/${runId}/outcome?waitMs=600000`);
  expect(JSON.parse((await stream.ask("5", "POST", `/v1/runs/${runId}/cancel`, {})).text)).toMatchObject({
    kind: "stopping",
  });
  expect(JSON.parse((await outcome).text)).toMatchObject({ outcome: { kind: "cancelled" } });
  stream.socket.send("{}");
  expect(await stream.closed).toBe("1007 invalid");
});

test("G35: a stream whose token is revoked ends", { timeout: 20_000 }, async () => {
  const { actors, open } = await served();
  const stream = open("all");
  await stream.ready;
  actors.delete("all");
  expect(await stream.closed).toBe("1008 unauthenticated");
});

test("a stream is closed with shutting_down when the server shuts down", async () => {
  const { open, handler } = await served();
  const stream = open("all");
  await stream.next(({ type }) => type === "open");
  await handler.drain();
  expect(await stream.closed).toBe("1001 shutting_down");
});

test.each([
  ["a WebSocket", {}],
  ["an event stream", { streams: "shared", fetch: withConnections(6) } as const],
])(
  "G30: fifty followers over %s get every event once across a restart of the server",
  {
    timeout: 60_000,
  },
  async (_, how) => {
    const belay = await openBelay({ agent, store: ":memory:", graceMs: 200, liveRunsMax: 100 });
    const first = await realServer(belay);
    const client = await connectBelay({ url: first.url, token: first.token, ...how });
    const sessions = await Promise.all(Array.from({ length: 50 }, () => client.createSession()));
    const prompted = (text: string) => Promise.all(sessions.map(({ id }) => belay.session(id).prompt(text).outcome));
    await prompted("say one");
    const begun: Promise<void>[] = [];
    const followers = sessions.map(async (session) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      begun.push(promise);
      const seqs: number[] = [];
      let ends = 0;
      for await (const event of session.events()) {
        if ("seq" in event) seqs.push(event.seq);
        resolve();
        if (event.type === "run.settled" && ++ends === 3) return seqs;
      }
      return seqs;
    });
    await Promise.all(begun);
    await first.close();
    await prompted("say two");
    const second = await realServer(belay, Number(new URL(first.url).port));
    await prompted("say three");
    for (const [index, session] of sessions.entries()) {
      const { head } = await belay.session(session.id).row();
      expect(await followers[index]).toEqual(Array.from({ length: head }, (_one, at) => at + 1));
    }
    await client.close();
    await second.close();
    await belay.close({ mode: "cancel" });
  },
);
