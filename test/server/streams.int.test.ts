// Event streams over real sockets: resumed anywhere, cut anywhere, closed gracefully.
import type { IncomingMessage } from "node:http";
import { afterEach, expect, test } from "vitest";
import { recorded } from "../../src/http/schemas/event.ts";
import { untilAborted, waits } from "../fixtures/belay.ts";
import { openTestServer, type TestServer } from "../fixtures/server.ts";
import { type Frame, SseReader } from "./sse-reader.ts";

const opened: TestServer[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((server) => server.close()));
});

const ACTS = {
  wait: waits,
  talk: (turn) => {
    turn.emit("once upon a time");
    return untilAborted(turn.signal);
  },
} satisfies Parameters<typeof openTestServer>[0];

async function open(): Promise<TestServer> {
  const server = await openTestServer(ACTS);
  opened.push(server);
  return server;
}

/** Reads until a frame matches, and disconnects. */
async function until(response: IncomingMessage, fits: (frame: Frame) => boolean): Promise<readonly Frame[]> {
  const reader = new SseReader();
  for await (const bytes of response) if (reader.take(bytes).some(fits)) break;
  return reader.frames;
}

const seqs = (frames: readonly Frame[]): readonly number[] =>
  frames.flatMap(({ id }) => (id === undefined ? [] : [Number(id)]));

const range = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);

/** Creates a session with some runs in its log. */
async function filled(server: TestServer, runs: number): Promise<{ readonly id: string; readonly head: number }> {
  const session = await server.belay.createSession();
  for (let run = 0; run < runs; run += 1) await session.prompt(`grüße 😀 ${run}`).outcome;
  return { id: session.id, head: (await session.row()).head };
}

test("a stream has first the missed events and then new ones, each once with its position", {
  meta: { id: "http/event-stream-unbuffered" },
}, async () => {
  const server = await open();
  const { id, head } = await filled(server, 2);
  const response = await server.open("GET", `/v1/sessions/${id}/events`);
  expect(response.headers).toMatchObject({
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store, no-transform",
    "x-accel-buffering": "no",
  });
  const run = server.belay.session(id).prompt("more");
  const frames = await until(response, ({ event, data }) => event === "run.settled" && data.includes(run.id));
  expect(seqs(frames)).toEqual(range(1, (await server.belay.session(id).row()).head));
  expect(head).toBeGreaterThan(10);
  for (const { data, event, id: at } of frames) {
    const parsed = recorded.parse(JSON.parse(data));
    expect([parsed.type, String(parsed.seq)]).toEqual([event, at]);
    expect(parsed).toEqual(JSON.parse(data));
  }
});

test("G30: Last-Event-ID overrides the query, and both resume with exactly the next event", async () => {
  const server = await open();
  const { id, head } = await filled(server, 1);
  const last = ({ id: at }: Frame): boolean => at === String(head);
  const byQuery = await until(await server.open("GET", `/v1/sessions/${id}/events?after=3`), last);
  expect(seqs(byQuery)).toEqual(range(4, head));
  const headers = { "last-event-id": "5" };
  const byHeader = await until(await server.open("GET", `/v1/sessions/${id}/events?after=3`, { headers }), last);
  expect(seqs(byHeader)).toEqual(range(6, head));
});

test.each(["99999", "x", "-1", "1.5", "9".repeat(30), "ses_b.3"])(
  "Last-Event-ID: %s is refused",
  { meta: { id: "G30/bad-cursor-refused" } },
  async (cursor) => {
    const server = await open();
    const { id } = await filled(server, 1);
    const answer = await server.ask("GET", `/v1/sessions/${id}/events`, { headers: { "last-event-id": cursor } });
    expect(answer).toMatchObject({ status: 400, body: { error: { code: "invalid" } } });
  },
);

test("deltas are sent on request, without a position", async () => {
  const server = await open();
  const session = await server.belay.createSession();
  const run = session.prompt("talk");
  await run.accepted;
  const path = `/v1/sessions/${session.id}/events`;
  const frames = await until(await server.open("GET", `${path}?deltas=with`), ({ event }) => event === "delta");
  const delta = frames.at(-1);
  expect(delta?.id).toBeUndefined();
  expect(JSON.parse(delta?.data ?? "")).toMatchObject({ type: "delta", text: "once upon a time", from: 0 });
  const without = await until(await server.open("GET", path), ({ event }) => event === "turn.extended");
  expect(without.every(({ id }) => id !== undefined)).toBe(true);
});

test("one connection follows all sessions of a tenant and no other, and resumes by its cursor", {
  meta: { id: "G30/all-sessions-one-connection" },
}, async () => {
  const server = await open();
  const mine = await server.belay.createSession({ tenant: "acme" });
  const theirs = await server.belay.createSession({ tenant: "other" });
  const stream = await server.open("GET", "/v1/events", { token: "acme" });
  // The first event is the current position: the stream has only later events.
  const [here] = await until(stream, ({ event }) => event === "here");
  await theirs.prompt("secret").outcome;
  await mine.prompt("own").outcome;
  const isEnd = ({ event }: Frame): boolean => event === "run.settled";
  const resume = async (cursor: string | undefined): Promise<readonly Frame[]> =>
    until(await server.open("GET", "/v1/events", { token: "acme", headers: { "last-event-id": cursor ?? "" } }), isEnd);
  const received = await resume(here?.id);
  expect(JSON.stringify(received)).not.toContain(theirs.id);
  expect(
    received.filter(({ event }) => event.startsWith("run.")).map(({ data }) => JSON.parse(data).sessionId),
  ).toEqual(Array(3).fill(mine.id));
  await mine.prompt("again").outcome;
  const rest = await resume(received.at(-1)?.id);
  expect(rest.filter(({ event }) => event === "run.accepted")).toHaveLength(1);
  const old = await server.open("GET", "/v1/events?after=elsewhere.7", { token: "acme" });
  expect((await until(old, ({ event }) => event === "missed")).at(-1)?.event).toBe("missed");
});

test("a shutdown ends every stream with `bye`, and refuses new ones", async () => {
  const server = await open();
  const { id } = await filled(server, 1);
  const streams = await Promise.all([
    server.open("GET", `/v1/sessions/${id}/events`),
    server.open("GET", "/v1/events"),
    server.open("GET", `/v1/runs/${server.belay.session(id).prompt("wait").id}/events`),
  ]);
  await server.began("wait");
  const waiting = server.belay.session(id);
  const run = (await waiting.runs({ limit: 1 }))[0]?.id ?? "";
  const outcome = server.ask("GET", `/v1/runs/${run}/outcome?waitMs=600000`);
  const ends = streams.map((stream) => until(stream, ({ event }) => event === "bye"));
  await server.handler.drain();
  for (const frames of await Promise.all(ends)) {
    expect(frames.at(-1)).toEqual({ id: undefined, event: "bye", data: '{"reason":"shutting_down"}' });
  }
  expect(server.handler.streams).toBe(0);
  // The waiting request is answered; the run continues.
  expect(await outcome).toMatchObject({ status: 202, body: { phase: "live" } });
  expect(await server.ask("GET", `/v1/sessions/${id}/events`)).toMatchObject({
    status: 503,
    body: { error: { code: "shutting_down" } },
  });
  expect((await server.ask("GET", "/readyz")).body).toEqual({ status: "closing" });
});

test("G32: a reader that disconnects ends its stream and nothing else", async () => {
  const server = await open();
  const session = await server.belay.createSession();
  session.prompt("wait");
  await server.began("wait");
  const stream = await server.open("GET", `/v1/sessions/${session.id}/events`);
  expect(server.handler.streams).toBe(1);
  stream.destroy();
  while (server.handler.streams > 0) await new Promise((resolve) => setImmediate(resolve));
  expect((await session.explain()).live?.phase).toBe("running");
});

/** A seeded pseudo-random generator. */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Reads exactly `bytesMax` bytes of a stream and disconnects. Returns the complete frames. */
async function cut(response: IncomingMessage, bytesMax: number): Promise<readonly Frame[]> {
  const reader = new SseReader();
  let left = bytesMax;
  for await (const bytes of response) {
    reader.take(bytes.subarray(0, left));
    left -= bytes.length;
    if (left <= 0) break;
  }
  return reader.frames;
}

test("G30: cut at 2,000 random bytes while the log grows: no gap, no duplicate", {
  timeout: 120_000,
  meta: { id: "G30/two-thousand-random-cuts" },
}, async () => {
  const server = await open();
  const session = await server.belay.createSession();
  const random = seeded(7);
  const received: number[] = [];
  let prompts = 0;
  for (let cuts = 0; cuts < 2_000; cuts += 1) {
    // The log grows while it is read, by enough that there is always something to cut.
    while (prompts * 5 < (received.at(-1) ?? 0) + 15) {
      prompts += 1;
      session.prompt(`grüße 😀 ${prompts} ${"x".repeat(300)}`);
    }
    const headers = received.length === 0 ? {} : { "last-event-id": String(received.at(-1)) };
    const response = await server.open("GET", `/v1/sessions/${session.id}/events`, { headers });
    // The first line of the stream has 13 bytes, so this reads from no event to a few.
    received.push(...seqs(await cut(response, 1 + random(900))));
  }
  const { head } = await session.row();
  const response = await server.open("GET", `/v1/sessions/${session.id}/events?after=${received.at(-1)}`);
  if ((received.at(-1) ?? 0) < head) received.push(...seqs(await until(response, ({ id }) => id === String(head))));
  response.destroy();
  expect(received).toEqual(range(1, head));
  expect(head).toBeGreaterThan(1_000);
});

test("G30: cut at every single byte of a short log: always the exact rest", {
  timeout: 120_000,
  meta: { id: "G30/cut-at-every-byte" },
}, async () => {
  const server = await open();
  const { id, head } = await filled(server, 1);
  const whole = await server.open("GET", `/v1/sessions/${id}/events`);
  let bytes = 0;
  const reader = new SseReader();
  for await (const piece of whole) {
    bytes += piece.length;
    if (reader.take(piece).some((frame) => frame.id === String(head))) break;
  }
  for (let at = 1; at <= bytes; at += 1) {
    const before = seqs(await cut(await server.open("GET", `/v1/sessions/${id}/events`), at));
    if (before.at(-1) === head) continue;
    const headers = before.length === 0 ? {} : { "last-event-id": String(before.at(-1)) };
    const rest = await until(
      await server.open("GET", `/v1/sessions/${id}/events`, { headers }),
      (one) => one.id === String(head),
    );
    expect([...before, ...seqs(rest)], `cut at ${at}`).toEqual(range(1, head));
  }
});
