// Tests for every mount of Belay in another server: each route refuses each attack, and bodies, events and stops pass
// unchanged.
import { once } from "node:events";
import { request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { isMutation, paramsOf, type Route } from "../../src/http/routes/route.ts";
import { ROUTE_NAMES, type RouteName, routeOf } from "../../src/http/routes/routes.ts";
import { fetchBelay, type Mounted, type Verify } from "../../src/http/serve.ts";
import { TOKEN_SCOPES } from "../../src/http/transport/http-exchange.ts";
import type { BelayControl } from "../../src/ports/control.ts";
import { openBelay } from "../../src/sdk/belay.ts";
import { recordingControl } from "../fixtures/recording-control.ts";
import { bodyOf, type Ids, idsOf, pathOf } from "./samples.ts";

/** Called after the test in reverse order. */
export const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Like databases and JWT libraries: async, with a list of scopes, and rejecting for unknown tokens. */
export const tokens: Verify = async (token) => {
  if (token === "operator") return { name: "operator", scopes: TOKEN_SCOPES };
  if (token === "acme") return { name: "acme", scopes: [...TOKEN_SCOPES], tenant: "acme" };
  const left = TOKEN_SCOPES.filter((scope) => `no-${scope}` !== token && scope !== "admin");
  if (token.startsWith("no-")) return { name: token, scopes: left };
  throw new Error("no such token");
};

export const OPTIONS = {
  tokens,
  hosts: ["app.example.com"],
  limits: { changesPerSecond: 10_000, changesBurst: 10_000 },
};

export function mounted(control: BelayControl, basePath?: string): Mounted {
  const mount = fetchBelay(control, { ...OPTIONS, ...(basePath === undefined ? {} : { basePath }) });
  closers.push(() => mount.close());
  return mount;
}

export async function listening(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(
    () => server.close(),
    () => server.closeAllConnections(),
  );
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Mounts Belay in a listening server. Resolves with the base URL of its routes. */
export type MountOf = (control: BelayControl) => Promise<string>;

interface Attempt {
  readonly headers: Readonly<Record<string, string>>;
  readonly ids?: Ids;
  readonly query?: string;
  readonly body?: string;
}

interface Attack {
  readonly init: (name: RouteName, route: Route) => Attempt | undefined;
  readonly status: number;
  /** The status during a lockout. */
  readonly later?: number;
}

const JSON_TYPE = { "content-type": "application/json" };
export const as = (token: string) => ({ authorization: `Bearer ${token}`, ...JSON_TYPE });

const ATTACKS: Readonly<Record<string, Attack>> = {
  "no token": { init: (_, { scope }) => (scope === "public" ? undefined : { headers: JSON_TYPE }), status: 401 },
  "a token without the scope": {
    init: (_, { scope }) => (scope === "public" ? undefined : { headers: as(`no-${scope}`) }),
    status: 403,
  },
  "a page of another origin": {
    init: () => ({ headers: { ...as("operator"), origin: "https://evil.example" } }),
    status: 403,
  },
  "another tenant's ids": {
    // A key without a session id is looked up among the sender's own sessions.
    init: (_, { path }) =>
      paramsOf(path).every((param) => param === "key") ? undefined : { headers: as("acme"), ids: idsOf("other") },
    status: 404,
  },
  "a tenant's token for the whole server": {
    init: (_, { serverWide }) => (serverWide === undefined ? undefined : { headers: as("acme") }),
    status: 403,
  },
  "a token that the host's lookup rejects": {
    init: (_, { scope }) => (scope === "public" ? undefined : { headers: as("stranger") }),
    status: 401,
    later: 429,
  },
  "a tenant's token for the operator's session of the same name": {
    init: (_, { path }) =>
      paramsOf(path).some((param) => param === "session" || param === "process")
        ? { headers: as("acme"), ids: { ...idsOf(undefined), session: "ses_acme", process: "proc_acme.1" } }
        : undefined,
    status: 404,
  },
  "a prompt that interrupts, from a token that may not cancel": {
    init: (name) =>
      name === "promptSession"
        ? { headers: as("no-cancel"), body: JSON.stringify({ prompt: "stop that", delivery: "interrupt" }) }
        : undefined,
    status: 403,
  },
  "a Host that is not the host's": {
    init: () => ({ headers: { ...as("operator"), host: "evil.example" } }),
    status: 421,
  },
  "a page without an origin": { init: () => ({ headers: { ...as("operator"), origin: "null" } }), status: 403 },
  "a token in the query": { init: () => ({ headers: JSON_TYPE, query: "token=operator" }), status: 400 },
  "a page of another site": {
    init: () => ({ headers: { ...as("operator"), "sec-fetch-site": "cross-site" } }),
    status: 403,
  },
  "a form instead of JSON": {
    init: (_, route) =>
      isMutation(route) && route.scope !== "public" && bodyOf(route) !== undefined
        ? { headers: { ...as("operator"), "content-type": "text/plain" } }
        : undefined,
    status: 415,
  },
};

/** Uses Node's HTTP client: fetch() cannot set the Host header. */
async function statusOf(base: string, route: Route, { headers, ids, query, ...attempt }: Attempt): Promise<number> {
  const path = pathOf(route, ids ?? idsOf(undefined));
  const target = query === undefined ? path : `${path}${path.includes("?") ? "&" : "?"}${query}`;
  const body = attempt.body ?? bodyOf(route) ?? (isMutation(route) ? "{}" : undefined);
  // For a DELETE with a body this client sends no length automatically.
  const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
  const sent = request(base + target, { method: route.method, headers: { ...headers, ...length } });
  sent.end(body);
  const [answer] = await once(sent, "response");
  answer.destroy();
  return answer.statusCode;
}

/** Emits a text, and then waits until it is stopped. */
export const agent = async (turn: { emit(text: string): void; signal: AbortSignal }): Promise<string> => {
  turn.emit("first word");
  return new Promise((_, reject) => turn.signal.addEventListener("abort", () => reject(turn.signal.reason)));
};

export function testMounts(mounts: Readonly<Record<string, MountOf>>): void {
  describe.each(Object.entries(mounts))("G35: mounted in %s, every route refuses", (_, mount) => {
    test.each(Object.entries(ATTACKS))("%s", async (_, { init, status, later = status }) => {
      const { control, calls } = recordingControl("ses_other.a");
      const base = await mount(control);
      const found: string[] = [];
      let tried = 0;
      for (const name of ROUTE_NAMES) {
        const route = routeOf(name);
        const attack = init(name, route);
        if (attack === undefined) continue;
        tried += 1;
        const answer = await statusOf(base, route, attack);
        if (![status, later].includes(answer)) found.push(`${name}: ${answer}, not ${status}`);
      }
      expect(found).toEqual([]);
      expect(calls).toEqual([]);
      expect(tried).toBeGreaterThan(0);
    });
  });

  describe.each(Object.entries(mounts))("mounted in %s", (_, mount) => {
    test("bodies arrive unchanged, events arrive as they happen, and a rejected token is denied", async () => {
      const belay = await openBelay({ store: ":memory:", agent });
      closers.push(() => belay.close({ mode: "cancel", limitMs: 1_000 }));
      const base = await mount(belay);
      const ask = (path: string, body?: unknown, token = "operator"): Promise<Response> =>
        fetch(base + path, {
          headers: as(token),
          ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
        });
      expect((await ask("/v1/status", undefined, "stranger")).status).toBe(401);
      const made = await ask("/v1/sessions", { id: "ses_mine", title: "Mine" });
      expect([made.status, ((await made.json()) as { title: string }).title]).toEqual([201, "Mine"]);
      const events = await ask("/v1/sessions/ses_mine/events?deltas=with");
      expect(events.headers.get("cache-control")).toContain("no-transform");
      const reader = events.body?.getReader();
      await ask("/v1/sessions/ses_mine/runs", { prompt: "go" });
      let seen = "";
      while (!seen.includes("first word")) seen += new TextDecoder().decode((await reader?.read())?.value);
      const stopped = await ask("/v1/sessions/ses_mine/cancel", { reason: "enough of it", background: "keep" });
      expect(await stopped.json()).toMatchObject({ kind: "stopping" });
      while (!seen.includes("run.settled")) seen += new TextDecoder().decode((await reader?.read())?.value);
      expect(seen).toContain("enough of it");
      await reader?.cancel();
    });
  });
}
