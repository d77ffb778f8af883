import { expect, test } from "vitest";
import { STREAM_WINDOW_CHARS, type StreamDown } from "../../wire/stream-message.ts";
import { STREAM_REQUESTS_MAX } from "../limits.ts";
import type { HttpAnswer, HttpRequest, ResponseStream } from "./http-exchange.ts";
import { SharedStream } from "./shared-stream.ts";

const carrier: HttpRequest = {
  ...{ id: "req_1", method: "GET", path: "/v1/stream", query: new URLSearchParams(), via: "tcp" },
  header: (name) => ({ host: "127.0.0.1:1", authorization: "Bearer t", cookie: "c" })[name],
  body: () => Promise.resolve(""),
  signal: new AbortController().signal,
};

const actor = { name: "tester", scopes: new Set(["read"] as const), tenant: undefined };

/** A stream whose requests are answered by the test, and its sent messages. */
function opened(answer: (request: HttpRequest) => Promise<HttpAnswer>) {
  const stop = new AbortController();
  const stream = new SharedStream({
    ...{ id: "str_1", actor, carrier, handle: answer },
    kindOf: (method) => (method === "POST" ? "stops" : "follows"),
  });
  const frames = stream.frames(stop.signal);
  const next = async (): Promise<StreamDown> => {
    const { value } = await frames.next();
    return JSON.parse(String(value).slice("data: ".length));
  };
  return { stream, next, stop };
}

const json = (body: string): HttpAnswer => ({ status: 200, headers: {}, body });

async function* endless(text: string): AsyncGenerator<string, void> {
  for (;;) yield text;
}

const get = (id: string, path = "/v1/x") => ({ type: "request", id, method: "GET", path }) as const;

test("a request has the credentials of its connection, and its own cursor and key", async () => {
  const handled: HttpRequest[] = [];
  const { stream, next } = opened(async (request) => {
    handled.push(request);
    return json("{}");
  });
  expect(await next()).toEqual({ type: "open", stream: "str_1" });
  stream.receive({ ...get("1", "/v1/sessions/ses_a/events?after=3"), lastEventId: "7" });
  expect(await next()).toEqual({ type: "received", id: "1" });
  expect(await next()).toEqual({ type: "answer", id: "1", head: { status: 200, headers: {} }, text: "{}" });
  const [request] = handled;
  expect(request?.path).toBe("/v1/sessions/ses_a/events");
  expect(request?.query.get("after")).toBe("3");
  const headers = ["authorization", "host", "last-event-id", "cookie", "content-type"];
  expect(headers.map((name) => request?.header(name))).toEqual(["Bearer t", "127.0.0.1:1", "7", undefined, undefined]);
});

test("G31: a response that is not read gets one window and delays no other", async () => {
  const bodies: Record<string, ResponseStream> = { "/v1/slow": endless("s".repeat(50_000)), "/v1/quick": endless("q") };
  const { stream, next } = opened(async ({ path }) => ({ status: 200, headers: {}, body: bodies[path] }));
  stream.receive(get("slow", "/v1/slow"));
  stream.receive(get("quick", "/v1/quick"));
  let slow = 0;
  let quick = 0;
  while (quick < 500) {
    const down = await next();
    if (down.type !== "piece") continue;
    if (down.id === "slow") slow += down.text.length;
    else {
      quick += 1;
      stream.receive({ type: "read", id: "quick", chars: down.text.length });
    }
  }
  expect(slow).toBeGreaterThanOrEqual(STREAM_WINDOW_CHARS);
  expect(slow).toBeLessThan(STREAM_WINDOW_CHARS + 64 * 1024);
  stream.receive({ type: "read", id: "slow", chars: slow });
  let down = await next();
  while (!(down.type === "piece" && down.id === "slow")) {
    if (down.type === "piece") stream.receive({ type: "read", id: "quick", chars: 1 });
    down = await next();
  }
});

test("G40: the response to a stop is sent before the pieces of streams", async () => {
  const { stream, next } = opened(async ({ method }) =>
    method === "POST" ? json("receipt") : { status: 200, headers: {}, body: endless("x".repeat(60_000)) },
  );
  for (let id = 0; id < 20; id += 1) stream.receive(get(String(id)));
  for (let down = await next(); down.type !== "piece"; down = await next());
  stream.receive({ type: "request", id: "stop", method: "POST", path: "/v1/cancel", body: {} });
  await new Promise<void>((resolve) => queueMicrotask(resolve));
  const after = [await next(), await next()];
  expect(after.map((one) => one.type)).toEqual(["received", "answer"]);
});

test("G40: a connection with the maximum number of followers still accepts a stop", async () => {
  const { stream, next } = opened(async ({ method }) =>
    method === "POST" ? json("receipt") : new Promise<HttpAnswer>(() => {}),
  );
  for (let id = 0; id <= STREAM_REQUESTS_MAX; id += 1) stream.receive(get(String(id)));
  stream.receive({ type: "request", id: "stop", method: "POST", path: "/v1/cancel", body: {} });
  const answers: Record<string, number> = {};
  while (answers.stop === undefined) {
    const down = await next();
    if (down.type === "answer") answers[down.id] = down.head.status;
  }
  expect(answers).toEqual({ [STREAM_REQUESTS_MAX]: 429, stop: 200 });
});

test("G32: the end of a connection ends all its responses, and leaving a response ends only that one", async () => {
  const signals: AbortSignal[] = [];
  const { stream, stop } = opened(({ signal }) => {
    signals.push(signal);
    return new Promise(() => {});
  });
  const frames = stream.frames(stop.signal);
  await frames.next();
  for (const id of ["1", "2", "3"]) stream.receive(get(id));
  stream.receive({ type: "leave", id: "2" });
  expect(signals.map(({ aborted }) => aborted)).toEqual([false, true, false]);
  stop.abort();
  expect(signals.every(({ aborted }) => aborted)).toBe(true);
});
