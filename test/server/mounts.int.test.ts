// Belay mounted in common servers. For every route of the table and every mount, a request that is not admitted does
// not reach the control. New routes are tested here automatically.
import { once } from "node:events";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { serve as serveHono } from "@hono/node-server";
import { fastify } from "fastify";
import { Hono } from "hono";
import { describe, expect, test } from "vitest";
import { fetchBelay, serveBelay } from "../../src/http/serve.ts";
import { openBelay } from "../../src/sdk/belay.ts";
import { agent, as, closers, listening, type MountOf, mounted, OPTIONS, testMounts, tokens } from "./mount-attacks.ts";

const require = createRequire(import.meta.url);
const express = require("express");
const compression = require("compression");

const EXPRESS =
  (...before: (() => unknown)[]): MountOf =>
  async (control) => {
    const app = express();
    for (const middleware of before) app.use(middleware());
    app.use("/agents", mounted(control).node);
    return `${await listening(createServer(app))}/agents`;
  };

/** All mounts. */
const MOUNTS: Readonly<Record<string, MountOf>> = {
  "its own server": async (control) => {
    const serving = await serveBelay(control, OPTIONS);
    closers.push(() => serving.close());
    return serving.at;
  },
  "node:http, below a path": async (control) =>
    `${await listening(createServer(mounted(control, "/agents").node))}/agents`,
  Express: EXPRESS(),
  "Express behind compression": EXPRESS(compression),
  "Express behind a body parser": EXPRESS(() => express.json()),
  "Express behind a body parser and compression": EXPRESS(compression, () => express.json()),
  // As `express.urlencoded()` alone does in Express 4.
  "Express behind a parser that leaves an empty object": EXPRESS(
    () => (request: { body?: unknown }, _: unknown, next: () => void) => {
      request.body = {};
      next();
    },
  ),
  "Express, with the place in the options as well": async (control) => {
    const app = express();
    app.use(express.json());
    app.use("/agents", mounted(control, "/agents").node);
    return `${await listening(createServer(app))}/agents`;
  },
  // As Nest does for a middleware of a module.
  "Express at a pattern, which strips the whole path": async (control) => {
    const app = express();
    app.use("/agents/*path", mounted(control, "/agents").node);
    return `${await listening(createServer(app))}/agents`;
  },
  // As Next.js passes requests on: it puts its own host into the URL.
  "a web handler with another host in the URL": async (control) => {
    const { fetch: answer } = mounted(control, "/agents");
    const server = serveHono({
      fetch: (request: Request) => {
        const { pathname, search } = new URL(request.url);
        const { method, headers, body } = request;
        const about = { method, headers, ...(body === null ? {} : { body, duplex: "half" as const }) };
        return answer(new Request(`http://localhost:3000${pathname}${search}`, about));
      },
      port: 0,
      hostname: "127.0.0.1",
    });
    await once(server, "listening");
    closers.push(() => server.close());
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/agents`;
  },
  "Fastify behind its body parser": async (control) => {
    const { nodeAs } = mounted(control, "/agents");
    const app = fastify();
    app.addContentTypeParser("text/plain", { parseAs: "string" }, (_, body, done) => done(null, body));
    app.all("/agents/*", (request, reply) => {
      reply.hijack();
      const { body } = request;
      nodeAs(body === undefined || body === null ? {} : { body }, request.raw, reply.raw);
    });
    closers.push(() => app.close());
    return `${await app.listen({ port: 0, host: "127.0.0.1" })}/agents`;
  },
  Hono: (control) => inHono((app) => app.mount("/agents", mounted(control).fetch)),
  "Hono at a pattern, which takes all of the address": (control) =>
    inHono((app, { fetch: answer } = mounted(control, "/agents")) =>
      app.all("/agents/*", ({ req }) => answer(req.raw)),
    ),
};

async function inHono(mount: (app: Hono) => void): Promise<string> {
  const app = new Hono();
  mount(app);
  const server = serveHono({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });
  await once(server, "listening");
  closers.push(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/agents`;
}

testMounts(MOUNTS);

describe("mounted in a host", () => {
  test("the host can set the actor, and the Host header is checked, not the URL", async () => {
    const belay = await openBelay({ store: ":memory:", agent });
    closers.push(() => belay.close({ mode: "cancel", limitMs: 1_000 }));
    const mount = mounted(belay, "/api/belay");
    const request = (host: string): Request =>
      new Request("http://localhost:3000/api/belay/v1/sessions", { headers: { host } });
    expect((await mount.fetch(request("app.example.com"))).status).toBe(401);
    expect((await mount.fetchAs({ actor: { name: "ann", scopes: ["read"] } }, request("app.example.com"))).status).toBe(
      200,
    );
    expect((await mount.fetchAs({ actor: { name: "ann", scopes: ["read"] } }, request("evil.example"))).status).toBe(
      421,
    );
    await expect(mount.fetchAs({ actor: { name: "ann" } as never }, request("app.example.com"))).rejects.toThrow(
      /scopes/,
    );
  });

  test("the limits of an actor are options, and invalid ones are refused", async () => {
    const control = await openBelay({ store: ":memory:", agent });
    closers.push(() => control.close());
    const mount = fetchBelay(control, { tokens, limits: { streamsPerToken: 1 } });
    closers.push(() => mount.close());
    const open = (): Promise<Response> =>
      mount.fetch(new Request("http://localhost/v1/events", { headers: as("operator") }));
    const first = await open();
    expect([first.status, (await open()).status]).toEqual([200, 429]);
    await first.body?.cancel();
    expect((await open()).status).toBe(200);
    expect(() => fetchBelay(control, { tokens, limits: { streamsPerToken: 0 } })).toThrow(/whole number/);
  });
});
