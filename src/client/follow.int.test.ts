import { describe, expect, test } from "vitest";
import { type Connected, connected, until } from "../../test/fixtures/connected-client.ts";
import { type Exchange, eventText } from "../../test/fixtures/scripted-server.ts";
import type { Delta, Gap } from "../core/model/delta.ts";
import type { Recorded } from "../core/model/event.ts";
import type { AllSessionsEvent } from "../ports/control.ts";
import { FAULTS_MAX, JUMPS_MAX, SILENCE_MS } from "./limits.ts";

const STREAM = "GET /v1/sessions/ses_1/events";

/** Follows a session in the background: the events received, and how following ended. */
function listen(fixture: Connected, options: { after?: number; deltas?: "with"; signal?: AbortSignal } = {}) {
  const heard: (Recorded | Delta | Gap)[] = [];
  const over = (async () => {
    for await (const one of fixture.client.session("ses_1").events(options)) heard.push(one);
  })();
  over.catch(() => undefined);
  const seqs = (): readonly number[] => heard.flatMap((one) => ("seq" in one ? [one.seq] : []));
  const said = (): string => heard.map((one) => (one.type === "delta" ? one.text : "")).join("");
  return { heard, over, seqs, said, until: (count: number) => until(() => heard.length >= count) };
}

const opened = async (fixture: Connected): Promise<Exchange> => (await fixture.server.next(STREAM)).stream();

const deltaText = (text: string, from: number, kind?: "reasoning"): string =>
  `event: delta\ndata: ${JSON.stringify({ type: "delta", runId: "run_1", turnId: "turn_1.1", text, from, kind })}\n\n`;

describe("a stream whose connection is lost", () => {
  test("G30: continues with the next event, any number of times", async () => {
    await using fixture = await connected();
    const reader = listen(fixture, { after: 2 });
    let server = await opened(fixture);
    expect(server.line).toBe(`${STREAM}?after=2&deltas=without`);
    expect(server.header("last-event-id")).toBeUndefined();
    for (let seq = 3; seq < 13; seq += 1) {
      server.events(seq);
      await until(() => reader.seqs().at(-1) === seq);
      await server.cut();
      await fixture.passPause();
      server = await opened(fixture);
      expect(server.header("last-event-id")).toBe(String(seq));
    }
    expect(reader.seqs()).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  });

  test("G30: at any byte of an event, neither loses nor repeats it", async () => {
    await using fixture = await connected();
    const reader = listen(fixture);
    const whole = Buffer.from(eventText(1, { type: "inbox.added", item: { kind: "result", text: "né €😀" } }));
    let server = await opened(fixture);
    for (let bytes = 0; bytes < whole.length; bytes += 1) {
      server.say(whole.subarray(0, bytes));
      await server.cut();
      await fixture.passPause();
      server = await opened(fixture);
      // No event arrived, so the same request is sent again.
      expect(server.line).toBe(`${STREAM}?after=0&deltas=without`);
      expect(server.header("last-event-id")).toBeUndefined();
    }
    server.say(whole).events(2);
    await reader.until(2);
    expect(reader.seqs()).toEqual([1, 2]);
  });

  test("waits as long as the server says, then longer each time, and resets once it received an event", {
    meta: { id: "client/reconnect-backoff" },
  }, async () => {
    await using fixture = await connected();
    const reader = listen(fixture);
    const pauses: number[] = [];
    for (const seq of [1, undefined, undefined, 2]) {
      const server = await opened(fixture);
      if (seq !== undefined) server.events(seq);
      if (seq !== undefined) await until(() => reader.seqs().at(-1) === seq);
      await server.cut();
      pauses.push(await fixture.passPause());
    }
    // Half of 1000, 2000, …: the test's random number is always 0, and the server's `retry` is 1000.
    expect(pauses).toEqual([500, 1000, 2000, 500]);
  });

  test("because the server says goodbye or just ends it is opened again", async () => {
    await using fixture = await connected();
    const reader = listen(fixture);
    const first = await opened(fixture);
    first.events(1).say('event: bye\ndata: {"reason":"shutting_down"}\n\n').events(2);
    await fixture.passPause();
    const second = await opened(fixture);
    expect(second.header("last-event-id")).toBe("1");
    second.events(2).end();
    await fixture.passPause();
    (await opened(fixture)).events(3);
    await reader.until(3);
    expect(reader.seqs()).toEqual([1, 2, 3]);
  });

  test("silently is detected after three heartbeats, and not before", {
    meta: { id: "client/silent-stream-detected" },
  }, async () => {
    await using fixture = await connected();
    const reader = listen(fixture);
    const silent = await opened(fixture);
    silent.events(1);
    await reader.until(1);
    await fixture.clock.advance(SILENCE_MS - 1);
    silent.say(": \n\n").events(2);
    await reader.until(2);
    await fixture.clock.advance(SILENCE_MS - 1);
    silent.events(3);
    await reader.until(3);
    await fixture.clock.advance(SILENCE_MS);
    await silent.left();
    await fixture.passPause();
    const again = await opened(fixture);
    expect(again.header("last-event-id")).toBe("3");
  });

  test("for longer than `patienceMs` rejects with `disconnected`", async () => {
    await using fixture = await connected({ patienceMs: 3000 });
    const reader = listen(fixture);
    (await opened(fixture)).events(1);
    await reader.until(1);
    await fixture.server.die();
    while (fixture.clock.elapsed() < 3000) await fixture.passPause();
    await expect(reader.over).rejects.toMatchObject({ code: "disconnected" });
    expect(reader.seqs()).toEqual([1]);
  });
});

describe("a faulty server", () => {
  test("that repeats events has them delivered once", async () => {
    await using fixture = await connected();
    const reader = listen(fixture);
    (await opened(fixture)).events(1, 2, 1, 2, 2, 3);
    await reader.until(3);
    expect(reader.seqs()).toEqual([1, 2, 3]);
  });

  test("that skips an event is asked again from the last delivered one", async () => {
    await using fixture = await connected();
    const reader = listen(fixture);
    const first = await opened(fixture);
    // In one chunk, so that the hole is one jump and not several.
    first.say([1, 3, 4, 5, 6, 7].map((seq) => eventText(seq)).join(""));
    await first.left();
    await fixture.passPause();
    const second = await opened(fixture);
    expect(second.header("last-event-id")).toBe("1");
    second.events(2, 3);
    await reader.until(3);
    expect(reader.seqs()).toEqual([1, 2, 3]);
  });

  test("that skips it repeatedly is an error, and nothing after the hole is delivered", async () => {
    await using fixture = await connected();
    const reader = listen(fixture);
    const pauses: number[] = [];
    for (let jump = 0; jump <= JUMPS_MAX; jump += 1) {
      (await opened(fixture)).say(eventText(1) + eventText(3));
      if (jump < JUMPS_MAX) pauses.push(await fixture.passPause());
    }
    expect(pauses).toEqual([500, 1000, 2000]);
    await expect(reader.over).rejects.toMatchObject({ code: "internal", message: expect.stringContaining("1 to 3") });
    expect(reader.seqs()).toEqual([1]);
  });

  test("that ends the stream because of an internal failure is retried a limited number of times", async () => {
    await using fixture = await connected();
    const reader = listen(fixture);
    for (let fault = 0; fault <= FAULTS_MAX; fault += 1) {
      (await opened(fixture)).say('event: bye\ndata: {"reason":"store_corrupt"}\n\n');
      if (fault < FAULTS_MAX) await fixture.passPause();
    }
    await expect(reader.over).rejects.toMatchObject({ code: "store_corrupt" });
  });

  test.each(["data: nonsense\n\n", "data: 5\n\n", "data: {}\n\n", 'event: x\ndata: {"type":"x","seq":"1"}\n\n'])(
    "that sends %j is an error",
    async (text) => {
      await using fixture = await connected();
      const reader = listen(fixture);
      (await opened(fixture)).say(text);
      await expect(reader.over).rejects.toMatchObject({ code: "internal" });
    },
  );

  test("that responds with something other than a stream is an error", async () => {
    await using fixture = await connected({ patienceMs: 0 });
    const reader = listen(fixture);
    (await fixture.server.next(STREAM)).text(200, "hello", { "content-type": "text/plain" });
    await expect(reader.over).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining("text/plain"),
    });
  });
});

test("a stream that gets a proxy's error page is opened again", async () => {
  await using fixture = await connected();
  const reader = listen(fixture);
  (await fixture.server.next(STREAM)).text(200, "<h1>Back soon</h1>", { "content-type": "text/html" });
  await fixture.passPause();
  (await fixture.server.next(STREAM)).text(404, "default backend - 404");
  await fixture.passPause();
  (await opened(fixture)).events(1);
  await reader.until(1);
  expect(reader.seqs()).toEqual([1]);
});

describe("items of a stream besides events", () => {
  test("a gap is delivered, and the events after it are not a hole", async () => {
    await using fixture = await connected();
    const reader = listen(fixture);
    const server = await opened(fixture);
    server.say('event: gap\ndata: {"type":"gap","from":1,"to":7}\n\n').events(8);
    await reader.until(2);
    expect(reader.heard[0]).toEqual({ type: "gap", from: 1, to: 7 });
    await server.cut();
    await fixture.passPause();
    expect((await opened(fixture)).header("last-event-id")).toBe("8");
  });

  test("delivered text is not delivered again after a reconnect, and overlapping text is trimmed", async () => {
    await using fixture = await connected();
    const reader = listen(fixture, { deltas: "with" });
    const first = await opened(fixture);
    first
      .say(deltaText("Hel", 0))
      .say(deltaText("hm", 0, "reasoning"))
      .say(deltaText("lo ", 3));
    await reader.until(3);
    await first.cut();
    await fixture.passPause();
    const second = await opened(fixture);
    second
      .say(deltaText("Hello wor", 0))
      .say(deltaText("hm, yes", 0, "reasoning"))
      .say(deltaText("ld", 9));
    await reader.until(6);
    expect(reader.heard.slice(3)).toMatchObject([
      { text: "wor", from: 6 },
      { text: ", yes", from: 2, kind: "reasoning" },
      { text: "ld", from: 9 },
    ]);
    // None of this is new, and it makes nothing after it look new.
    second.say(deltaText("Hello", 0)).say(deltaText(" world", 5)).events(1);
    await until(() => reader.seqs().length === 1);
    expect(reader.heard).toHaveLength(7);
  });

  test("a turn that is requested again delivers its text again", async () => {
    await using fixture = await connected();
    const reader = listen(fixture, { deltas: "with" });
    const server = await opened(fixture);
    server.say(deltaText("Hello", 0)).say(eventText(1, { type: "run.recovered", runId: "run_1", attempt: 2 }));
    server.say(deltaText("Hell", 0)).say(eventText(2, { type: "turn.requested", runId: "run_1", turnId: "turn_1.1" }));
    server.say(deltaText("He", 0));
    await reader.until(5);
    expect(reader.said()).toBe("HelloHellHe");
  });

  test("text that was dropped on the way stays missing", async () => {
    await using fixture = await connected();
    const reader = listen(fixture, { deltas: "with" });
    (await opened(fixture)).say(deltaText("a", 0)).say(deltaText("z", 25));
    await reader.until(2);
    expect(reader.heard).toMatchObject([
      { text: "a", from: 0 },
      { text: "z", from: 25 },
    ]);
  });
});

describe("the end of a stream", () => {
  test("204 ends it", async () => {
    await using fixture = await connected();
    const reader = listen(fixture);
    (await fixture.server.next(STREAM)).text(204, "");
    await reader.over;
    expect(reader.heard).toEqual([]);
  });

  test.each([
    [400, "invalid"],
    [401, "unauthenticated"],
    [403, "forbidden"],
    [404, "not_found"],
  ])("%i is an error", async (status, code) => {
    await using fixture = await connected();
    const reader = listen(fixture);
    (await fixture.server.next(STREAM)).error(status, code);
    await expect(reader.over).rejects.toMatchObject({ code });
    expect(fixture.server.heard).toHaveLength(1);
  });

  test.each([429, 503])("%i does not end it: it is opened again after the server's delay", async (status) => {
    await using fixture = await connected();
    const reader = listen(fixture);
    (await fixture.server.next(STREAM)).error(status, "overloaded", { "retry-after": "3" });
    expect(await fixture.passPause()).toBe(3000);
    (await opened(fixture)).events(1);
    await reader.until(1);
  });

  test("G32: leaving the loop closes the connection and sends nothing else", async () => {
    await using fixture = await connected();
    const left = (async () => {
      for await (const _ of fixture.client.session("ses_1").events()) return;
    })();
    const server = await opened(fixture);
    server.events(1, 2);
    await left;
    await server.left();
    expect(fixture.server.heard).toHaveLength(1);
    expect(fixture.clock.pending).toEqual([]);
  });

  test("a signal ends the loop without an error, while it waits and between two connections", async () => {
    await using fixture = await connected();
    const stop = new AbortController();
    const reader = listen(fixture, { signal: stop.signal });
    const server = await opened(fixture);
    server.events(1);
    await reader.until(1);
    stop.abort();
    await reader.over;
    await server.left();
    const stopPause = new AbortController();
    const pausing = listen(fixture, { signal: stopPause.signal });
    await (await opened(fixture)).cut();
    await until(() => fixture.clock.pending.some(({ idle }) => !idle));
    stopPause.abort();
    await pausing.over;
    expect(fixture.clock.pending).toEqual([]);
  });

  test("close() ends it with an error", async () => {
    await using fixture = await connected();
    const reader = listen(fixture);
    const server = await opened(fixture);
    await fixture.client.close();
    await expect(reader.over).rejects.toMatchObject({
      code: "disconnected",
      message: expect.stringContaining("closed"),
    });
    await server.left();
  });

  test("a slow reader does not trigger its own watchdog", async () => {
    await using fixture = await connected();
    const events = fixture.client.session("ses_1").events();
    const first = events.next();
    const server = await opened(fixture);
    server.events(1);
    expect((await first).value).toMatchObject({ seq: 1 });
    await fixture.clock.advance(3 * SILENCE_MS);
    server.events(2);
    expect((await events.next()).value).toMatchObject({ seq: 2 });
    await events.return();
    expect(fixture.server.heard).toHaveLength(1);
  });
});

const allSessionsText = (cursor: string): string =>
  `id: ${cursor}\nevent: run.started\ndata: ${JSON.stringify({ cursor, sessionId: "ses_1", event: { seq: 1 } })}\n\n`;

function watching(fixture: Connected, after?: string): AllSessionsEvent[] {
  const heard: AllSessionsEvent[] = [];
  (async () => {
    for await (const one of fixture.client.events(after === undefined ? {} : { after })) heard.push(one);
  })().catch(() => undefined);
  return heard;
}

describe("the events of all sessions", () => {
  test("continue after their cursor, across reconnects", {
    meta: { id: "G30/watch-resumes-by-cursor" },
  }, async () => {
    await using fixture = await connected();
    const heard = watching(fixture, "c1");
    const first = (await fixture.server.next("GET /v1/events?after=c1")).stream();
    first.say(allSessionsText("c2"));
    await until(() => heard.length === 1);
    await first.cut();
    await fixture.passPause();
    const second = (await fixture.server.next("GET /v1/events")).stream();
    expect(second.header("last-event-id")).toBe("c2");
    second.say('id: c9\nevent: missed\ndata: {"cursor":"c9"}\n\n').say(allSessionsText("c10"));
    await until(() => heard.length === 3);
    expect(heard).toMatchObject([
      { type: "event", cursor: "c2", sessionId: "ses_1" },
      { type: "missed", cursor: "c9" },
      { type: "event", cursor: "c10" },
    ]);
  });

  test("the starting position is reported once, and a connection lost right after it loses nothing", {
    meta: { id: "G30/start-cursor-survives-cut" },
  }, async () => {
    await using fixture = await connected();
    const heard = watching(fixture);
    const here = 'id: c1\nevent: here\ndata: {"cursor":"c1"}\n\n';
    const first = (await fixture.server.next("GET /v1/events")).stream().say(here);
    await until(() => heard.length === 1);
    await first.cut();
    await fixture.passPause();
    const second = await fixture.server.next("GET /v1/events");
    expect(second.header("last-event-id")).toBe("c1");
    second.stream().say(here).say(allSessionsText("c2"));
    await until(() => heard.length === 2);
    expect(heard).toMatchObject([
      { type: "here", cursor: "c1" },
      { type: "event", cursor: "c2" },
    ]);
  });

  test("a connection lost before the first cursor is reported as missed events", async () => {
    await using fixture = await connected();
    const heard = watching(fixture);
    await (await fixture.server.next("GET /v1/events")).stream().cut();
    await fixture.passPause();
    (await fixture.server.next("GET /v1/events")).stream().say(allSessionsText("c5"));
    await until(() => heard.length === 2);
    expect(heard).toMatchObject([
      { type: "missed", cursor: "c5" },
      { type: "event", cursor: "c5" },
    ]);
  });
});
