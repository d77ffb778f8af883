// Streams of events over real sockets: resumed anywhere, cut anywhere, ended in order.
import type { IncomingMessage } from "node:http";
import { afterEach, expect, test } from "vitest";
import { recorded } from "../../src/http/schemas/event.ts";
import { untilAborted, waits } from "../fixtures/belay.ts";
import { openTestServer, type TestServer } from "../fixtures/server.ts";
import { type Frame, SseReader } from "./sse-reader.ts";

const opened: TestServer[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((house) => house.close()));
});

const ACTS = {
  wait: waits,
  talk: (turn) => {
    turn.emit("once upon a time");
    return untilAborted(turn.signal);
  },
} satisfies Parameters<typeof openTestServer>[0];

async function open(): Promise<TestServer> {
  const house = await openTestServer(ACTS);
  opened.push(house);
  return house;
}

/** Reads until a frame fits, and leaves. */
async function until(response: IncomingMessage, fits: (frame: Frame) => boolean): Promise<readonly Frame[]> {
  const reader = new SseReader();
  for await (const bytes of response) if (reader.take(bytes).some(fits)) break;
  return reader.frames;
}

const seqs = (frames: readonly Frame[]): readonly number[] =>
  frames.flatMap(({ id }) => (id === undefined ? [] : [Number(id)]));

const range = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);

/** A session with some runs in its log; its head. */
async function filled(house: TestServer, runs: number): Promise<{ readonly id: string; readonly head: number }> {
  const session = await house.belay.createSession();
  for (let run = 0; run < runs; run += 1) await session.prompt(`grüße 😀 ${run}`).outcome;
  return { id: session.id, head: (await session.row()).head };
}

test("what was missed comes first, then what happens; each fact is one, with its position", {
  meta: { id: "http/event-stream-unbuffered" },
}, async () => {
  const house = await open();
  const { id, head } = await filled(house, 2);
  const response = await house.open("GET", `/v1/sessions/${id}/events`);
  expect(response.headers).toMatchObject({
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store, no-transform",
    "x-accel-buffering": "no",
  });
  const run = house.belay.session(id).prompt("more");
  const frames = await until(response, ({ event, data }) => event === "run.settled" && data.includes(run.id));
  expect(seqs(frames)).toEqual(range(1, (await house.belay.session(id).row()).head));
  expect(head).toBeGreaterThan(10);
  for (const { data, event, id: at } of frames) {
    const fact = recorded.parse(JSON.parse(data));
    expect([fact.type, String(fact.seq)]).toEqual([event, at]);
    expect(fact).toEqual(JSON.parse(data));
  }
});

test("G30: the header counts more than the query, and both resume with exactly the next", async () => {
  const house = await open();
  const { id, head } = await filled(house, 1);
  const last = ({ id: at }: Frame): boolean => at === String(head);
  const byQuery = await until(await house.open("GET", `/v1/sessions/${id}/events?after=3`), last);
  expect(seqs(byQuery)).toEqual(range(4, head));
  const headers = { "last-event-id": "5" };
  const byHeader = await until(await house.open("GET", `/v1/sessions/${id}/events?after=3`, { headers }), last);
  expect(seqs(byHeader)).toEqual(range(6, head));
});

test.each(["99999", "x", "-1", "1.5", "9".repeat(30), "ses_b.3"])(
  "Last-Event-ID: %s is refused",
  { meta: { id: "G30/bad-cursor-refused" } },
  async (cursor) => {
    const house = await open();
    const { id } = await filled(house, 1);
    const answer = await house.ask("GET", `/v1/sessions/${id}/events`, { headers: { "last-event-id": cursor } });
    expect(answer).toMatchObject({ status: 400, body: { error: { code: "invalid" } } });
  },
);

test("deltas come if they are wanted, and have no position", async () => {
  const house = await open();
  const session = await house.belay.createSession();
  const run = session.prompt("talk");
  await run.accepted;
  const path = `/v1/sessions/${session.id}/events`;
  const frames = await until(await house.open("GET", `${path}?deltas=with`), ({ event }) => event === "delta");
  const delta = frames.at(-1);
  expect(delta?.id).toBeUndefined();
  expect(JSON.parse(delta?.data ?? "")).toMatchObject({ type: "delta", text: "once upon a time", from: 0 });
  const without = await until(await house.open("GET", path), ({ event }) => event === "turn.extended");
  expect(without.every(({ id }) => id !== undefined)).toBe(true);
});

test("one connection tells of all sessions of a tenant and of no other, and resumes by its cursor", {
  meta: { id: "G30/all-sessions-one-connection" },
}, async () => {
  const house = await open();
  const mine = await house.belay.createSession({ tenant: "acme" });
  const theirs = await house.belay.createSession({ tenant: "other" });
  const stream = await house.open("GET", "/v1/events", { token: "acme" });
  // First it says where it stands: what happened earlier is not its to tell, what happens from now on is.
  const [here] = await until(stream, ({ event }) => event === "here");
  await theirs.prompt("secret").outcome;
  await mine.prompt("own").outcome;
  const isEnd = ({ event }: Frame): boolean => event === "run.settled";
  const resume = async (cursor: string | undefined): Promise<readonly Frame[]> =>
    until(await house.open("GET", "/v1/events", { token: "acme", headers: { "last-event-id": cursor ?? "" } }), isEnd);
  const heard = await resume(here?.id);
  expect(JSON.stringify(heard)).not.toContain(theirs.id);
  expect(heard.filter(({ event }) => event.startsWith("run.")).map(({ data }) => JSON.parse(data).sessionId)).toEqual(
    Array(3).fill(mine.id),
  );
  await mine.prompt("again").outcome;
  const rest = await resume(heard.at(-1)?.id);
  expect(rest.filter(({ event }) => event === "run.accepted")).toHaveLength(1);
  const old = await house.open("GET", "/v1/events?after=elsewhere.7", { token: "acme" });
  expect((await until(old, ({ event }) => event === "missed")).at(-1)?.event).toBe("missed");
});

test("a shutdown ends every stream with a last word, and refuses new ones", async () => {
  const house = await open();
  const { id } = await filled(house, 1);
  const streams = await Promise.all([
    house.open("GET", `/v1/sessions/${id}/events`),
    house.open("GET", "/v1/events"),
    house.open("GET", `/v1/runs/${house.belay.session(id).prompt("wait").id}/events`),
  ]);
  await house.began("wait");
  const waiting = house.belay.session(id);
  const run = (await waiting.runs({ limit: 1 }))[0]?.id ?? "";
  const outcome = house.ask("GET", `/v1/runs/${run}/outcome?waitMs=600000`);
  const ends = streams.map((stream) => until(stream, ({ event }) => event === "bye"));
  await house.handler.drain();
  for (const frames of await Promise.all(ends)) {
    expect(frames.at(-1)).toEqual({ id: undefined, event: "bye", data: '{"reason":"shutting_down"}' });
  }
  expect(house.handler.streams).toBe(0);
  // Whoever waits is not kept waiting; the run goes on.
  expect(await outcome).toMatchObject({ status: 202, body: { phase: "live" } });
  expect(await house.ask("GET", `/v1/sessions/${id}/events`)).toMatchObject({
    status: 503,
    body: { error: { code: "shutting_down" } },
  });
  expect((await house.ask("GET", "/readyz")).body).toEqual({ status: "closing" });
});

test("G32: a reader that leaves ends its stream, and nothing else", async () => {
  const house = await open();
  const session = await house.belay.createSession();
  session.prompt("wait");
  await house.began("wait");
  const stream = await house.open("GET", `/v1/sessions/${session.id}/events`);
  expect(house.handler.streams).toBe(1);
  stream.destroy();
  while (house.handler.streams > 0) await new Promise((resolve) => setImmediate(resolve));
  expect((await session.explain()).live?.phase).toBe("running");
});

/** Numbers that look like chance, the same in every run. */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Takes exactly so many bytes of a stream and cuts it; what was whole by then counts. */
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
  const house = await open();
  const session = await house.belay.createSession();
  const chance = seeded(7);
  const heard: number[] = [];
  let asked = 0;
  for (let cuts = 0; cuts < 2_000; cuts += 1) {
    // It grows while it is being read, and by enough that there is always something to cut off.
    while (asked * 5 < (heard.at(-1) ?? 0) + 15) {
      asked += 1;
      session.prompt(`grüße 😀 ${asked} ${"x".repeat(300)}`);
    }
    const headers = heard.length === 0 ? {} : { "last-event-id": String(heard.at(-1)) };
    const response = await house.open("GET", `/v1/sessions/${session.id}/events`, { headers });
    // The head of the stream alone has 13 bytes: from nothing at all to a few events.
    heard.push(...seqs(await cut(response, 1 + chance(900))));
  }
  const { head } = await session.row();
  const response = await house.open("GET", `/v1/sessions/${session.id}/events?after=${heard.at(-1)}`);
  if ((heard.at(-1) ?? 0) < head) heard.push(...seqs(await until(response, ({ id }) => id === String(head))));
  response.destroy();
  expect(heard).toEqual(range(1, head));
  expect(head).toBeGreaterThan(1_000);
});

test("G30: cut at every single byte of a short log: always the exact rest", {
  timeout: 120_000,
  meta: { id: "G30/cut-at-every-byte" },
}, async () => {
  const house = await open();
  const { id, head } = await filled(house, 1);
  const whole = await house.open("GET", `/v1/sessions/${id}/events`);
  let bytes = 0;
  const reader = new SseReader();
  for await (const piece of whole) {
    bytes += piece.length;
    if (reader.take(piece).some((frame) => frame.id === String(head))) break;
  }
  for (let at = 1; at <= bytes; at += 1) {
    const before = seqs(await cut(await house.open("GET", `/v1/sessions/${id}/events`), at));
    if (before.at(-1) === head) continue;
    const headers = before.length === 0 ? {} : { "last-event-id": String(before.at(-1)) };
    const rest = await until(
      await house.open("GET", `/v1/sessions/${id}/events`, { headers }),
      (one) => one.id === String(head),
    );
    expect([...before, ...seqs(rest)], `cut at ${at}`).toEqual(range(1, head));
  }
});
