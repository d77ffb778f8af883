// Random requests get a response and never an internal error. Through the whole handler, without a socket.
import fc from "fast-check";
import { expect, test } from "vitest";
import { Guard } from "../../src/http/auth/guard.ts";
import { type Handler, makeHandler } from "../../src/http/handler.ts";
import { isMutation, type Route } from "../../src/http/routes/route.ts";
import { ROUTE_NAMES, routeOf } from "../../src/http/routes/routes.ts";
import type { BelayControl } from "../../src/ports/control.ts";
import { manualClock } from "../../src/testing/manual-clock.ts";
import { type PlainRequest, plainRequest } from "../fixtures/plain-request.ts";
import { recordingControl } from "../fixtures/recording-control.ts";
import { bodyOf, idsOf, pathOf } from "./samples.ts";

/** Random inputs for each parser. */
const INPUTS = 50_000;
const LIMIT_MS = 120_000;
const SEED = 20_261_115;

/** A server with a log to resume from and nothing else. */
function fuzzed(): Handler {
  const { control, calls } = recordingControl(undefined);
  const row = { id: "ses_a", head: 100, createdAt: 0, title: undefined, phase: "open" };
  async function* pages() {}
  const session = new Proxy(control.session("ses_a"), {
    get: (target, name) => {
      if (name === "row") return () => Promise.resolve(row);
      return name === "pages" ? pages : Reflect.get(target, name);
    },
  });
  const fuzzedControl: BelayControl = new Proxy(control, {
    get: (target, name) => {
      calls.length = 0;
      if (name === "session") return () => session;
      if (name === "status") return () => Promise.resolve({ phase: "open" });
      return name === "events" ? pages : Reflect.get(target, name);
    },
  });
  const clock = manualClock();
  const guard = new Guard({
    tokens: { verify: () => undefined },
    clock,
    mutationsPerSecond: 1e12,
    mutationsBurst: 1e12,
  });
  return makeHandler({ control: fuzzedControl, guard, clock, version: "0" });
}

const routes = ROUTE_NAMES.map(routeOf);
const mutations = routes.filter(isMutation);
const ids = idsOf(undefined);

const request = (route: Route, more: Partial<PlainRequest> = {}): PlainRequest => {
  const body = bodyOf(route);
  const sample = { method: route.method, target: pathOf(route, ids), ...(body === undefined ? {} : { body }) };
  return {
    ...sample,
    via: "socket",
    ...more,
    headers: { host: "localhost", "content-type": "application/json", ...more.headers },
  };
};

/** Sends each input, and fails for an internal error or a malformed response. */
async function throwAt(inputs: fc.Arbitrary<PlainRequest>): Promise<ReadonlyMap<number, number>> {
  const handler = fuzzed();
  const statuses = new Map<number, number>();
  const property = fc.asyncProperty(inputs, async (one) => {
    const { status, body } = await handler.handle(plainRequest(one));
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    if (typeof body === "object") {
      await body.next();
      await body.return?.();
    }
    if (status >= 500) throw new Error(`${status}: ${String(body)}`);
    if (status >= 400 && typeof body === "string" && JSON.parse(body).error.message === "")
      throw new Error("no message");
  });
  await fc.assert(property, { numRuns: INPUTS, seed: SEED });
  expect(handler.streams).toBe(0);
  return statuses;
}

const anyRoute = fc.constantFrom(...routes);
const text = fc.oneof(fc.string(), fc.string({ unit: "binary" }), fc.string({ unit: "grapheme", maxLength: 300 }));

/** A text with a part replaced by another text. */
const bent = (whole: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc
    .tuple(whole, text, fc.nat(200), fc.nat(20))
    .map(([one, other, from, length]) => one.slice(0, from) + other + one.slice(from + length));

test("50,000 paths", { timeout: LIMIT_MS, meta: { id: "http/fuzzed-paths" } }, async () => {
  const odd = fc.constantFrom(
    "%",
    "%2f",
    "%2F..",
    "//",
    "/../",
    "%00",
    "%ff",
    "%E0%A4%A",
    "ses_",
    "__proto__",
    "{session}",
  );
  const path = fc.oneof(
    bent(anyRoute.map((route) => pathOf(route, ids))),
    fc.array(fc.oneof(odd, text), { maxLength: 12 }).map((parts) => `/v1/${parts.join("/")}`),
    fc.tuple(anyRoute, text).map(([route, id]) => pathOf(route, { ...ids, session: id, run: id, key: id })),
  );
  const method = fc.constantFrom("GET", "HEAD", "POST", "PATCH", "DELETE", "PUT", "get", "");
  const statuses = await throwAt(
    fc.tuple(path, method, anyRoute).map(([target, how, route]) => request(route, { target, method: how })),
  );
  expect([...statuses.keys()]).toEqual(expect.arrayContaining([404, 405]));
});

test("50,000 queries", { timeout: LIMIT_MS }, async () => {
  const name = fc.oneof(
    fc.constantFrom(
      "after",
      "before",
      "limit",
      "deltas",
      "waitMs",
      "stream",
      "offset",
      "plain",
      "bytesMax",
      "__proto__",
    ),
    text,
  );
  const value = fc.oneof(
    fc.constantFrom(
      "0",
      "1",
      "-1",
      "1e3",
      "0x1",
      "1.5",
      "",
      " 1",
      "99999999999999999999",
      "NaN",
      "true",
      "with",
      "all",
    ),
    fc.nat(200).map(String),
    text,
  );
  const pair = fc.tuple(name, value).map(([one, other]) => `${encodeURIComponent(one.toWellFormed())}=${other}`);
  const query = fc.oneof(
    fc.array(pair, { maxLength: 4 }).map((pairs) => pairs.join("&")),
    text,
  );
  const statuses = await throwAt(
    fc.tuple(anyRoute, query).map(([route, one]) => request(route, { target: `${pathOf(route, ids)}?${one}` })),
  );
  expect([...statuses.keys()]).toEqual(expect.arrayContaining([200, 400, 404]));
});

test("50,000 bodies", { timeout: LIMIT_MS, meta: { id: "http/fuzzed-bodies" } }, async () => {
  const field = fc.constantFrom(
    "prompt",
    "reason",
    "waitMs",
    "move",
    "steer",
    "kind",
    "value",
    "data",
    "base64",
    "__proto__",
  );
  const nested = fc.nat(200).map((depth) => `${'{"data":'.repeat(depth)}1${"}".repeat(depth)}`);
  const body = fc.oneof(
    fc.json({ maxDepth: 8 }),
    fc.dictionary(field, fc.jsonValue()).map((one) => JSON.stringify(one)),
    fc.tuple(field, fc.json()).map(([one, json]) => `{"${one}":${json}}`),
    nested.map((deep) => `{"prompt":{"text":"a","data":${deep}}}`),
    text,
  );
  const statuses = await throwAt(
    fc
      .tuple(fc.constantFrom(...mutations), body, fc.boolean())
      .chain(([route, one, broken]) =>
        (broken ? bent(fc.constant(bodyOf(route) ?? "{}")) : fc.constant(one)).map((sent) =>
          request(route, { body: sent }),
        ),
      ),
  );
  expect([...statuses.keys()]).toEqual(expect.arrayContaining([400, 404]));
});

test("50,000 values of Last-Event-ID", { timeout: LIMIT_MS, meta: { id: "http/fuzzed-cursors" } }, async () => {
  const streams = routes.filter(({ answers }) => Object.values(answers).some(({ kind }) => kind === "events"));
  const cursor = fc.oneof(fc.nat(200).map(String), fc.bigInt().map(String), fc.double().map(String), text);
  const statuses = await throwAt(
    fc
      .tuple(fc.constantFrom(...streams), cursor)
      .map(([route, id]) => request(route, { headers: { "last-event-id": id } })),
  );
  expect([...statuses.keys()]).toEqual(expect.arrayContaining([200, 400]));
});

test("50,000 values of Idempotency-Key", { timeout: LIMIT_MS }, async () => {
  const key = fc.oneof(
    text,
    fc.nat(600).map((length) => "k".repeat(length)),
    fc.constantFrom("", " ", "\u0000", "\ud800"),
  );
  const statuses = await throwAt(
    fc
      .tuple(fc.constantFrom(...mutations), key)
      .map(([route, one]) => request(route, { headers: { "idempotency-key": one } })),
  );
  expect([...statuses.keys()]).toEqual(expect.arrayContaining([400, 404]));
});
