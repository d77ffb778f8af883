// G40: connections are reserved for stops, however many others there are.
import { once } from "node:events";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { openBelay } from "../../sdk/belay.ts";
import { systemClock } from "../../system/system-clock.ts";
import { Gate } from "../../testing/gate.ts";
import { CONNECTIONS_FOR_STOPS, CONNECTIONS_MAX } from "../limits.ts";
import { serveBelay } from "../serve.ts";
import type { HttpAnswer, HttpRequest } from "./http-exchange.ts";
import { NodeServer } from "./node-server.ts";

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** All received data, once the connection is closed. */
interface Dialled {
  readonly socket: Socket;
  readonly all: Promise<string>;
  readonly came: (pattern: RegExp) => Promise<void>;
}

async function dial(port: number, text = ""): Promise<Dialled> {
  const socket = connect({ port, host: "127.0.0.1" });
  closers.push(() => socket.destroy());
  let received = "";
  socket.on("error", () => {});
  socket.on("data", (piece) => {
    received += piece.toString("latin1");
  });
  const all = new Promise<string>((resolve) => socket.once("close", () => resolve(received)));
  const came = (pattern: RegExp): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => void (pattern.test(received) && resolve());
      socket.on("data", look);
      look();
    });
  await once(socket, "connect");
  socket.write(text);
  return { socket, all, came };
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
const HALF = "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ";
const STOP = "POST /v1/cancel HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";

/** Admits every path but `/stranger`. `/hangs` waits for the gate. */
async function serve(connectionsMax: number) {
  const gate = new Gate();
  const arrived: string[] = [];
  const handle = async (request: HttpRequest): Promise<HttpAnswer> => {
    if (request.path !== "/stranger") request.onAdmitted?.();
    arrived.push(request.path);
    if (request.path === "/hangs") await gate.opened;
    return { status: 200, headers: { "content-type": "text/plain" }, body: `<${request.path}>` };
  };
  const limits = { connectionsMax, keepAliveMs: 60_000 };
  const opened = new NodeServer({ handle, clock: systemClock, via: "tcp", limits });
  await new Promise<void>((resolve) => opened.server.listen(0, "127.0.0.1", resolve));
  closers.push(() => opened.close(0));
  return { opened, gate, arrived, port: (opened.server.address() as AddressInfo).port };
}

describe("G40: beyond the limit of connections", () => {
  test("only the oldest without a valid token is closed, even with half a request or a response", {
    meta: { id: "G33/connections-bounded" },
  }, async () => {
    const { opened, port } = await serve(3);
    const known = await dial(port, get("/known"));
    await known.came(/<\/known>/);
    const half = await dial(port, HALF);
    const stranger = await dial(port, get("/stranger"));
    await stranger.came(/<\/stranger>/);
    const fourth = await dial(port, get("/fourth"));
    await fourth.came(/<\/fourth>/);
    expect(await half.all).toBe("");
    const fifth = await dial(port, get("/fifth"));
    await fifth.came(/<\/fifth>/);
    expect(await stranger.all).toContain("</stranger>");
    expect([known.socket.destroyed, opened.connections]).toEqual([false, 3]);
    // Only authenticated ones are left: the oldest idle one is closed.
    const sixth = await dial(port, get("/sixth"));
    await sixth.came(/<\/sixth>/);
    expect(await known.all).toContain("</known>");
  });

  test("stops are accepted while every connection is busy; other requests get 429", async () => {
    const { opened, port, arrived, gate } = await serve(2);
    const busy = [await dial(port, get("/hangs")), await dial(port, get("/hangs"))];
    await expect.poll(() => arrived.length).toBe(2);
    const stop = await dial(port, STOP);
    expect(await stop.all).toContain("</v1/cancel>");
    const other = await dial(port, get("/other"));
    expect(await other.all).toMatch(/^HTTP\/1\.1 429 [\s\S]*Only stops are accepted/);
    expect(arrived).toEqual(["/hangs", "/hangs", "/v1/cancel"]);
    // The reserved connections are limited, too; one without a request is closed for a stop.
    const halves: Dialled[] = [];
    for (let count = 0; count < CONNECTIONS_FOR_STOPS + 5; count += 1) halves.push(await dial(port, HALF));
    expect(await (await dial(port, STOP)).all).toContain("</v1/cancel>");
    expect(opened.connections).toBeLessThanOrEqual(2 + CONNECTIONS_FOR_STOPS);
    gate.open();
    for (const one of busy) await one.came(/<\/hangs>/);
  });
});

test("G40: 1,300 half-open connections without a token delay no cancel over TCP", { timeout: 60_000 }, async () => {
  const settled = Promise.withResolvers<void>();
  const belay = await openBelay({
    store: ":memory:",
    agent: (turn) =>
      new Promise((_, reject) => {
        turn.signal.addEventListener("abort", () => {
          settled.resolve();
          reject(turn.signal.reason);
        });
      }),
  });
  closers.push(() => belay.close({ mode: "cancel", limitMs: 1_000 }));
  const scopes = ["read", "prompt", "cancel"] as const;
  const serving = await serveBelay(belay, { tokens: (token) => (token === "good" ? { name: "me", scopes } : null) });
  closers.push(() => serving.close());
  const port = Number(new URL(serving.at).port);
  const run = belay.prompt("wait");
  await run.accepted;
  const flood: Dialled[] = [];
  for (let count = 0; count < CONNECTIONS_MAX + 276; count += 1) flood.push(await dial(port, HALF));
  const sentAt = performance.now();
  const answer = await fetch(`${serving.at}/v1/runs/${run.id}/cancel`, {
    method: "POST",
    headers: { authorization: "Bearer good" },
  });
  const tookMs = performance.now() - sentAt;
  expect([answer.status, ((await answer.json()) as { kind: string }).kind]).toEqual([200, "stopping"]);
  await settled.promise;
  expect(await run.outcome).toMatchObject({ kind: "cancelled" });
  // A half-open connection may take ten seconds.
  expect(tookMs).toBeLessThan(5_000);
});
