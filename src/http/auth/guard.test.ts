import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { type ManualClock, manualClock } from "../../testing/manual-clock.ts";
import { MUTATIONS_BURST, STREAMS_PER_TOKEN_MAX, TOKEN_FAILURES_MAX } from "../limits.ts";
import type { Actor, HttpRequest, TokenScope } from "../transport/http-exchange.ts";
import { type Admission, Guard, type Requirements } from "./guard.ts";
import { Denial } from "./guard-denial.ts";
import { bearerOf } from "./guard-headers.ts";

interface TestRequest {
  readonly method?: string;
  readonly query?: string;
  readonly via?: "tcp" | "socket" | "fetch";
  readonly headers?: Readonly<Record<string, string>>;
}

/** A request of a program on this machine. The value `-` removes a header. */
function request({ method = "GET", query = "", via = "tcp", headers = {} }: TestRequest = {}): HttpRequest {
  const all: Record<string, string> = { host: "127.0.0.1:7777", ...headers };
  return {
    id: "req_1",
    method,
    path: "/v1/status",
    query: new URLSearchParams(query),
    header: (name) => (all[name] === "-" ? undefined : all[name]),
    via,
    body: () => Promise.resolve(""),
    signal: new AbortController().signal,
  };
}

const actor = (name: string, scopes: readonly TokenScope[], tenant?: string): Actor => ({
  name,
  scopes: new Set(scopes),
  tenant,
});

const ACTORS = {
  reader: actor("reader", ["read"]),
  writer: actor("writer", ["prompt", "cancel"]),
  admin: actor("admin", ["admin"]),
  acme: actor("acme", ["read", "prompt", "cancel"], "acme"),
};

const verify = (secret: string): Actor | undefined => new Map(Object.entries(ACTORS)).get(secret);

const bearer = (name: string) => ({ authorization: `Bearer ${name}` });
const json = { "content-type": "application/json" };
const READ: Requirements = { scope: "read", mutation: false };
const PROMPT: Requirements = { scope: "prompt", mutation: true };
const CANCEL: Requirements = { scope: "cancel", mutation: true, stop: true };

let clock: ManualClock;
let guard: Guard;

beforeEach(() => {
  clock = manualClock();
  guard = new Guard({
    clock,
    tokens: { verify },
    origins: ["https://console.example.com"],
  });
  guard.serves({ scheme: "http", port: 7777 });
});

const denial = (result: { readonly kind: string } | Admission): Denial => {
  if ("denial" in result && result.denial instanceof Denial) return result.denial;
  throw new Error(`It was not denied but ${result.kind}.`);
};

describe("before the route is known", () => {
  test("a program with the right Host passes", () => {
    expect(guard.front(request())).toEqual({ kind: "passed", headers: {} });
  });

  test.each(["-", "evil.com", "evil.com:7777", "127.0.0.1.evil.com:7777", "127.0.0.1:7777, evil.com"])(
    "a Host of %s is misdirected",
    (host) => {
      expect(denial(guard.front(request({ headers: { host } })))).toMatchObject({ status: 421, code: "forbidden" });
    },
  );

  test("the Host is checked first: the denial reveals no other problem", () => {
    const headers = { host: "evil.com", origin: "null", "sec-fetch-site": "cross-site" };
    expect(denial(guard.front(request({ headers, query: "token=x" }))).status).toBe(421);
  });

  test.each([{ origin: "https://evil.com" }, { origin: "null" }, { "sec-fetch-site": "cross-site" }])(
    "a page that sends %j is denied",
    (headers) => {
      expect(denial(guard.front(request({ headers })))).toMatchObject({ status: 403, code: "forbidden", headers: {} });
    },
  );

  test("a configured origin may read the response, and responses to others do not reveal it", () => {
    const passed = guard.front(request({ headers: { origin: "https://console.example.com" } }));
    expect(passed).toMatchObject({
      kind: "passed",
      headers: { "access-control-allow-origin": "https://console.example.com", vary: "Origin" },
    });
    expect(JSON.stringify(passed)).not.toMatch(/\*|credentials|private-network/);
    expect(guard.front(request({ headers: { origin: "http://127.0.0.1:7777" } }))).toEqual({
      kind: "passed",
      headers: {},
    });
  });

  const preflight = (headers: Readonly<Record<string, string>>) =>
    guard.front(request({ method: "OPTIONS", headers: { "access-control-request-method": "POST", ...headers } }));

  test("a preflight of a configured origin is answered without a token", () => {
    expect(preflight({ origin: "https://console.example.com", "sec-fetch-site": "cross-site" })).toMatchObject({
      kind: "answered",
      answer: {
        status: 204,
        headers: {
          "access-control-allow-origin": "https://console.example.com",
          "access-control-allow-headers":
            "authorization, content-type, idempotency-key, last-event-id, acp-connection-id, acp-session-id",
        },
      },
    });
  });

  test("a preflight of any other origin is denied, and so is one for private network access", () => {
    expect(denial(preflight({ origin: "https://evil.com" })).status).toBe(403);
    expect(denial(preflight({ origin: "http://127.0.0.1:7777" })).status).toBe(403);
    expect(denial(preflight({})).status).toBe(403);
    const headers = { origin: "https://console.example.com", "access-control-request-private-network": "true" };
    expect(denial(preflight(headers)).status).toBe(403);
  });

  test("a plain OPTIONS returns the methods and reaches no route", () => {
    const result = guard.front(request({ method: "OPTIONS" }));
    expect(result).toMatchObject({ kind: "answered", answer: { status: 204 } });
  });

  test.each(["token=belay_abc", "after=1&access_token=belay_abc", "ToKeN=belay_abc", "%74oken=belay_abc"])(
    "a token in the query is denied with a hint that does not repeat it: %s",
    (query) => {
      const refused = denial(guard.front(request({ query })));
      expect(refused).toMatchObject({ status: 400, code: "invalid", hint: expect.stringContaining("Authorization") });
      expect(JSON.stringify(refused.answer("req_1"))).not.toContain("belay_abc");
    },
  );
});

describe("once the route is known", () => {
  test("a request without a token over TCP or in a framework is denied with a hint", () => {
    for (const via of ["tcp", "fetch"] as const) {
      const refused = denial(guard.admit(request({ via }), READ));
      expect(refused).toMatchObject({ status: 401, code: "unauthenticated" });
      expect(refused.headers).toEqual({ "www-authenticate": "Bearer" });
    }
  });

  test("the private socket needs no token, but a token that is sent is verified", () => {
    expect(
      guard.admit(request({ via: "socket" }), { scope: "admin", mutation: false, serverWide: true }),
    ).toMatchObject({
      kind: "admitted",
      actor: { name: "local", tenant: undefined },
    });
    const withToken = guard.admit(request({ via: "socket", headers: bearer("reader") }), PROMPT);
    expect(denial(withToken).status).toBe(403);
    expect(denial(guard.admit(request({ via: "socket", headers: bearer("nobody") }), READ)).status).toBe(401);
  });

  test("a public route needs no token, and its actor has no scopes", () => {
    const admission = guard.admit(request({ headers: bearer("wrong") }), { scope: "public", mutation: false });
    expect(admission).toMatchObject({ kind: "admitted", actor: { scopes: new Set(), tenant: "-" } });
  });

  test("the scope is required, admin includes all, and the denial has the actor for the audit trail", () => {
    expect(guard.admit(request({ headers: bearer("reader") }), READ)).toMatchObject({ kind: "admitted" });
    expect(guard.admit(request({ headers: { ...bearer("admin"), ...json } }), PROMPT)).toMatchObject({
      kind: "admitted",
    });
    const refused = guard.admit(request({ headers: { ...bearer("reader"), ...json } }), PROMPT);
    expect(refused).toMatchObject({ kind: "denied", actor: { name: "reader" }, denial: { status: 403 } });
  });

  test("server-wide routes are denied to tenants", () => {
    const requirements: Requirements = { scope: "read", mutation: false, serverWide: true };
    expect(denial(guard.admit(request({ headers: bearer("acme") }), requirements)).status).toBe(403);
    expect(guard.admit(request({ headers: bearer("reader") }), requirements)).toMatchObject({ kind: "admitted" });
  });

  test.each([
    ...["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp"],
    ...["text/plain; application/json", "application/json, text/plain", "text/json", ""],
  ])("a mutation with the content type %j is denied", (type) => {
    const headers = { ...bearer("writer"), "content-type": type };
    expect(denial(guard.admit(request({ method: "POST", headers }), CANCEL))).toMatchObject({
      status: 415,
      code: "invalid",
    });
  });

  test.each(["application/json", "application/json; charset=utf-8", "Application/JSON ;charset=utf-8"])(
    "a mutation with the content type %j is admitted",
    (type) => {
      const headers = { ...bearer("writer"), "content-type": type };
      expect(guard.admit(request({ method: "POST", headers }), CANCEL)).toMatchObject({ kind: "admitted" });
    },
  );

  test("a DELETE needs a content type only if it has a body", () => {
    const ask = (headers: Readonly<Record<string, string>>) =>
      guard.admit(request({ method: "DELETE", headers: { ...bearer("writer"), ...headers } }), CANCEL);
    expect(ask({})).toMatchObject({ kind: "admitted" });
    expect(ask({ "content-length": "0" })).toMatchObject({ kind: "admitted" });
    expect(denial(ask({ "content-length": "2" })).status).toBe(415);
    expect(denial(ask({ "transfer-encoding": "chunked" })).status).toBe(415);
  });
});

test("G7: a stop without a body needs no content type; any other mutation does", () => {
  const ask = (requirements: Requirements, headers: Readonly<Record<string, string>>) =>
    guard.admit(request({ method: "POST", headers: { ...bearer("writer"), ...headers } }), requirements);
  const form = { "content-type": "application/x-www-form-urlencoded" };
  for (const headers of [{}, { "content-length": "0" }, { ...form, "content-length": "0" }]) {
    expect(ask(CANCEL, headers)).toMatchObject({ kind: "admitted" });
    expect(denial(ask(PROMPT, headers)).status).toBe(415);
  }
  for (const headers of [form, { ...form, "content-length": "2" }, { "transfer-encoding": "chunked" }]) {
    expect(denial(ask(CANCEL, headers)).status).toBe(415);
  }
});

describe("the lockout", () => {
  const guess = () => guard.admit(request({ headers: bearer("wrong") }), READ);
  const lockIn = () => {
    for (let n = 0; n < TOKEN_FAILURES_MAX; n += 1) expect(denial(guess()).status).toBe(401);
  };

  test("after ten wrong tokens delays guesses, until it is over and no longer", async () => {
    lockIn();
    expect(denial(guess())).toMatchObject({ status: 429, code: "unauthenticated", headers: { "retry-after": "60" } });
    await clock.advance(59_000);
    expect(denial(guess()).headers).toMatchObject({ "retry-after": "1" });
    await clock.advance(1_000);
    expect(denial(guess()).status).toBe(401);
  });

  test("does not keep a valid token from stopping", () => {
    lockIn();
    expect(denial(guess()).status).toBe(429);
    const headers = { ...bearer("writer"), ...json };
    expect(guard.admit(request({ method: "POST", headers }), CANCEL)).toMatchObject({ kind: "admitted" });
    expect(guard.admit(request({ via: "socket" }), READ)).toMatchObject({ kind: "admitted" });
  });

  test("is not triggered by wrong tokens that arrive slowly", async () => {
    for (let n = 0; n < 50; n += 1) {
      expect(denial(guess()).status).toBe(401);
      await clock.advance(7_000);
    }
  });

  test("is not triggered by requests without a token", () => {
    for (let n = 0; n < 50; n += 1) expect(denial(guard.admit(request(), READ)).status).toBe(401);
    expect(denial(guess()).status).toBe(401);
  });

  test("does not end when the wall clock is set", { meta: { id: "G34/lockout-ignores-wall-clock" } }, () => {
    lockIn();
    clock.jump(3_600_000);
    expect(denial(guess()).status).toBe(429);
  });
});

describe("the limits of one token", () => {
  const ask = (name: string, requirements: Requirements) =>
    guard.admit(request({ method: "POST", headers: { ...bearer(name), ...json } }), requirements);

  test("mutations beyond the burst get Retry-After; cancels and other tokens are not limited", async () => {
    for (let n = 0; n < MUTATIONS_BURST; n += 1) expect(ask("writer", PROMPT).kind).toBe("admitted");
    expect(denial(ask("writer", PROMPT))).toMatchObject({
      status: 429,
      code: "overloaded",
      headers: { "retry-after": "1" },
    });
    for (let n = 0; n < 1_000; n += 1) expect(ask("writer", CANCEL).kind).toBe("admitted");
    expect(ask("acme", PROMPT).kind).toBe("admitted");
    await clock.advance(50);
    expect(ask("writer", PROMPT).kind).toBe("admitted");
    expect(ask("writer", PROMPT).kind).toBe("denied");
  });

  test("a denied mutation takes nothing from the bucket", () => {
    for (let n = 0; n < 100; n += 1) {
      expect(guard.admit(request({ method: "POST", headers: bearer("writer") }), PROMPT).kind).toBe("denied");
    }
    expect(ask("writer", PROMPT).kind).toBe("admitted");
  });

  test("streams are counted for each token, and a stream that ended is released once", () => {
    const [reader, acme] = [ACTORS.reader, ACTORS.acme];
    const passes = Array.from({ length: STREAMS_PER_TOKEN_MAX }, () => guard.stream(reader));
    expect(passes.every(({ kind }) => kind === "opened")).toBe(true);
    expect(denial(guard.stream(reader))).toMatchObject({ status: 429, code: "overloaded" });
    expect(guard.stream(acme).kind).toBe("opened");
    const [first] = passes;
    if (first?.kind === "opened") {
      first.release();
      first.release();
    }
    expect(guard.stream(reader).kind).toBe("opened");
    expect(guard.stream(reader).kind).toBe("denied");
  });
});

describe("the Authorization header", () => {
  test.each(["Bearer abc", "bearer abc", "BEARER  abc=="])("%j contains a token", (header) => {
    expect(bearerOf(header)).toMatch(/^abc/);
  });

  test.each([
    ...[
      "",
      "Bearer",
      "Bearer ",
      "abc",
      "Basic abc",
      "Bearer a b",
      "Bearer abc, Bearer def",
      "Bearer\tabc",
      " Bearer abc",
    ],
    ...["Bearerabc", "Bearer abc\n", "Bearer =", `Bearer ${"a".repeat(600)}`],
  ])("%j has none", (header) => {
    expect(bearerOf(header)).toBeUndefined();
  });

  test("15,000 random headers admit no request and throw nothing", () => {
    const piece = fc.constantFrom("Bearer", "bearer", " ", "reader ", ",", "=", "\t", "Basic", "\u0000", "reade", "é");
    const text = fc.oneof(
      fc.string({ maxLength: 60 }),
      fc.array(piece, { maxLength: 8 }).map((all) => all.join("")),
    );
    fc.assert(
      fc.property(text, (header) => {
        expect(guard.admit(request({ headers: { authorization: header } }), READ).kind).toBe("denied");
      }),
      { numRuns: 15_000 },
    );
  });
});
