// G35: for every route of the table, a request that is not admitted does not reach the control. New routes are tested
// here automatically.
import { describe, expect, test } from "vitest";
import { Guard } from "../../src/http/auth/guard.ts";
import { makeHandler } from "../../src/http/handler.ts";
import type { AuditNote } from "../../src/http/observer.ts";
import { isMutation, paramsOf, type Route } from "../../src/http/routes/route.ts";
import { ROUTE_NAMES, type RouteName, routeOf } from "../../src/http/routes/routes.ts";
import { type Actor, type HttpAnswer, TOKEN_SCOPES, type TokenScope } from "../../src/http/transport/http-exchange.ts";
import { manualClock } from "../../src/testing/manual-clock.ts";
import { type PlainRequest, plainRequest } from "../fixtures/plain-request.ts";
import { type Call, recordingControl } from "../fixtures/recording-control.ts";
import { bodyOf, idsOf, pathOf } from "./samples.ts";

const PORT = 4000;
const OWN = { host: `127.0.0.1:${PORT}`, "content-type": "application/json" } as const;
const AUTH = { authorization: "Bearer operator" } as const;

const actor = (name: string, scopes: readonly TokenScope[], tenant?: string): Actor => ({
  name,
  scopes: new Set(scopes),
  tenant,
});

/** The actors by token: the operator, a tenant, and for each scope one with all the other scopes. */
const ACTORS: Readonly<Record<string, Actor>> = {
  operator: actor("operator", TOKEN_SCOPES),
  acme: actor("acme", TOKEN_SCOPES, "acme"),
  ...Object.fromEntries(
    TOKEN_SCOPES.map((scope) => [
      `no-${scope}`,
      actor(
        `no-${scope}`,
        TOKEN_SCOPES.filter((one) => one !== scope && one !== "admin"),
      ),
    ]),
  ),
};

interface Attempted {
  readonly answer: HttpAnswer;
  readonly calls: readonly Call[];
  readonly notes: readonly AuditNote[];
}

async function attempt(request: PlainRequest): Promise<Attempted> {
  const clock = manualClock();
  const guard = new Guard({ tokens: { verify: (secret) => ACTORS[secret] }, clock });
  guard.serves({ scheme: "http", port: PORT });
  const { control, calls } = recordingControl("ses_other.a");
  const notes: AuditNote[] = [];
  const audit = {
    note: async (note: AuditNote) => void notes.push(note),
    read: async () => {
      calls.push({ what: "audit.read", given: [] });
      return { records: [] };
    },
  };
  const metrics = {
    answered: () => {},
    streams: () => {},
    acp: () => {},
    text: () => {
      calls.push({ what: "metrics", given: [] });
      return "";
    },
  };
  const handler = makeHandler({ control, guard, clock, version: "0", audit, metrics });
  return { answer: await handler.handle(plainRequest(request)), calls, notes };
}

/** A valid request of the operator. */
function valid(name: RouteName, ids = idsOf(undefined)): PlainRequest & { headers: Record<string, string> } {
  const route = routeOf(name);
  const body = bodyOf(route);
  return {
    method: route.method,
    target: pathOf(route, ids),
    headers: { ...OWN, ...AUTH },
    ...(body === undefined ? {} : { body }),
  };
}

interface Expected {
  readonly status: number;
  readonly code?: string;
}

/** The deviations of an attempt from what is expected. */
function findings(
  name: string,
  { answer, calls, notes }: Attempted,
  expected: Expected,
  audited: boolean,
): readonly string[] {
  const found: string[] = [];
  const code = typeof answer.body === "string" ? JSON.parse(answer.body).error?.code : undefined;
  if (answer.status !== expected.status) found.push(`${name}: status ${answer.status}, not ${expected.status}`);
  if (expected.code !== undefined && code !== expected.code) found.push(`${name}: code ${code}, not ${expected.code}`);
  if (calls.length > 0) found.push(`${name}: reached the control: ${calls.map(({ what }) => what).join(", ")}`);
  if (audited && (notes.length !== 1 || notes[0]?.answer !== (code === undefined ? "unknown" : "refused"))) {
    found.push(`${name}: ${notes.length} audit records: ${notes.map((note) => note.answer).join()}`);
  }
  if (!audited && notes.length > 0) found.push(`${name}: an audit record for a request that controls nothing`);
  if (answer.headers["x-request-id"] === undefined) found.push(`${name}: no request id`);
  return found;
}

type Attack = (
  name: RouteName,
  route: Route,
) => { readonly request: PlainRequest; readonly expected: Expected } | undefined;

const withHeaders = (name: RouteName, headers: Readonly<Record<string, string | undefined>>): PlainRequest => {
  const request = valid(name);
  const merged = Object.entries({ ...request.headers, ...headers }).filter(([, value]) => value !== undefined);
  return { ...request, headers: Object.fromEntries(merged) as Record<string, string> };
};

const ATTACKS: Readonly<Record<string, Attack>> = {
  "no token": (name, { scope }) =>
    scope === "public"
      ? undefined
      : {
          request: withHeaders(name, { authorization: undefined }),
          expected: { status: 401, code: "unauthenticated" },
        },
  "a bad token": (name, { scope }) =>
    scope === "public"
      ? undefined
      : {
          request: withHeaders(name, { authorization: "Bearer guess" }),
          expected: { status: 401, code: "unauthenticated" },
        },
  "the ids of another tenant": (name, route) => {
    // A key without a session id is looked up among the sender's own sessions.
    if (paramsOf(route.path).every((param) => param === "key")) return undefined;
    const request = valid(name, idsOf("other"));
    const expected = { status: 404, code: "not_found" };
    return { request: { ...request, headers: { ...request.headers, authorization: "Bearer acme" } }, expected };
  },
  "a tenant's token for the operator's session of the same name": (name, route) => {
    // A process of the operator's session `ses_acme` is `proc_acme.1`: the beginning of an id is not its tenant.
    const named = paramsOf(route.path).filter((param) => param === "session" || param === "process");
    if (named.length === 0) return undefined;
    const request = valid(name, { ...idsOf(undefined), session: "ses_acme", process: "proc_acme.1" });
    const expected = { status: 404, code: "not_found" };
    return { request: { ...request, headers: { ...request.headers, authorization: "Bearer acme" } }, expected };
  },
  "a prompt that interrupts, from a token that may not cancel": (name) =>
    name !== "promptSession"
      ? undefined
      : {
          request: {
            ...withHeaders(name, { authorization: "Bearer no-cancel" }),
            body: JSON.stringify({ prompt: "stop that", delivery: "interrupt" }),
          },
          expected: { status: 403, code: "forbidden" },
        },
  "a tenant's token for a server-wide route": (name, { serverWide }) =>
    serverWide === undefined
      ? undefined
      : { request: withHeaders(name, { authorization: "Bearer acme" }), expected: { status: 403, code: "forbidden" } },
  "a token without the scope": (name, { scope }) =>
    scope === "public"
      ? undefined
      : {
          request: withHeaders(name, { authorization: `Bearer no-${scope}` }),
          expected: { status: 403, code: "forbidden" },
        },
  "an evil Host": (name) => ({
    request: withHeaders(name, { host: `evil.example:${PORT}` }),
    expected: { status: 421, code: "forbidden" },
  }),
  "an evil Origin": (name) => ({
    request: withHeaders(name, { origin: "https://evil.example" }),
    expected: { status: 403, code: "forbidden" },
  }),
  "Origin: null": (name) => ({
    request: withHeaders(name, { origin: "null" }),
    expected: { status: 403, code: "forbidden" },
  }),
  "Sec-Fetch-Site: cross-site": (name) => ({
    request: withHeaders(name, { "sec-fetch-site": "cross-site" }),
    expected: { status: 403, code: "forbidden" },
  }),
  "a body of text/plain": (name, route) =>
    isMutation(route)
      ? { request: withHeaders(name, { "content-type": "text/plain" }), expected: { status: 415, code: "invalid" } }
      : undefined,
  "a token in the query": (name) => {
    const request = withHeaders(name, { authorization: undefined });
    return {
      request: { ...request, target: `${request.target}${request.target.includes("?") ? "&" : "?"}token=operator` },
      expected: { status: 400, code: "invalid" },
    };
  },
};

describe("G35: every route refuses", () => {
  test.each(Object.entries(ATTACKS))("%s", async (_, attack) => {
    const found: string[] = [];
    let tried = 0;
    for (const name of ROUTE_NAMES) {
      const route = routeOf(name);
      const one = attack(name, route);
      if (one === undefined) continue;
      tried += 1;
      found.push(...findings(name, await attempt(one.request), one.expected, isMutation(route)));
    }
    expect(found).toEqual([]);
    expect(tried).toBeGreaterThan(0);
  });

  test("a GET of a path that has only mutations, with the methods in Allow", async () => {
    const readable = new Set(
      ROUTE_NAMES.map(routeOf)
        .filter((route) => !isMutation(route))
        .map(({ path }) => path),
    );
    const found: string[] = [];
    const changing = ROUTE_NAMES.filter((name) => isMutation(routeOf(name)) && !readable.has(routeOf(name).path));
    for (const name of changing) {
      const tried = await attempt({ ...valid(name), method: "GET" });
      found.push(...findings(name, tried, { status: 405, code: "invalid" }, false));
      if (!tried.answer.headers.allow?.includes(routeOf(name).method)) found.push(`${name}: Allow`);
    }
    expect(found).toEqual([]);
    expect(changing.length).toBeGreaterThan(10);
  });
});

describe("the matrix of attacks is meaningful:", () => {
  test("a valid request reaches the control on every route that uses it", async () => {
    const silent: string[] = [];
    for (const name of ROUTE_NAMES) {
      const { calls, answer } = await attempt(valid(name));
      if (calls.length === 0) silent.push(`${name} ${answer.status}`);
    }
    expect(silent).toEqual(["health 200", "openapi 200", "stream 200", "sendToStream 404"]);
  });

  test("a request of a tenant passes the tenant to the control wherever the path has no id", async () => {
    const unnamed: string[] = [];
    for (const name of ROUTE_NAMES) {
      const { scope, serverWide, path, carrier } = routeOf(name);
      // The requests on a stream are admitted separately.
      if (scope === "public" || serverWide !== undefined || carrier || paramsOf(path).length > 0) continue;
      // Its ids are in the query.
      if (name === "runOutcomes") continue;
      const request = valid(name);
      const { calls, answer } = await attempt({
        ...request,
        headers: { ...request.headers, authorization: "Bearer acme" },
      });
      // A stream calls the control when it is read.
      if (typeof answer.body === "object") await answer.body.next().then(() => answer.body);
      const named = calls.some(({ given }) => JSON.stringify(given).includes('"tenant":"acme"'));
      if (!named && name !== "audit") unnamed.push(`${name}: ${JSON.stringify(calls)}`);
    }
    expect(unnamed).toEqual([]);
  });
});
