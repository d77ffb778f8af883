import { describe, expect, test } from "vitest";
import { type Connected, connected, until } from "../../test/fixtures/connected-client.ts";
import { type Exchange, eventText } from "../../test/fixtures/scripted-server.ts";
import type { Delta, Gap } from "../core/model/delta.ts";
import type { Recorded } from "../core/model/event.ts";
import { FAULTS_MAX, JUMPS_MAX, SILENCE_MS } from "./limits.ts";

const STREAM = "GET /v1/sessions/ses_1/events";

/** Reads a session in the background: what it has heard, and how that ended. */
function listen(house: Connected, options: { after?: number; deltas?: "with"; signal?: AbortSignal } = {}) {
  const heard: (Recorded | Delta | Gap)[] = [];
  const over = (async () => {
    for await (const one of house.client.session("ses_1").events(options)) heard.push(one);
  })();
  over.catch(() => undefined);
  const seqs = (): readonly number[] => heard.flatMap((one) => ("seq" in one ? [one.seq] : []));
  const said = (): string => heard.map((one) => (one.type === "delta" ? one.text : "")).join("");
  return { heard, over, seqs, said, until: (count: number) => until(() => heard.length >= count) };
}

const opened = async (house: Connected): Promise<Exchange> => (await house.server.next(STREAM)).stream();

const deltaText = (text: string, from: number, kind?: "reasoning"): string =>
  `event: delta\ndata: ${JSON.stringify({ type: "delta", runId: "run_1", turnId: "turn_1.1", text, from, kind })}\n\n`;

describe("a stream that is cut", () => {
  test("G30: goes on with the next event, over any number of cuts", async () => {
    await using house = await connected();
    const reader = listen(house, { after: 2 });
    let server = await opened(house);
    expect(server.line).toBe(`${STREAM}?after=2&deltas=without`);
    expect(server.header("last-event-id")).toBeUndefined();
    for (let seq = 3; seq < 13; seq += 1) {
      server.events(seq);
      await until(() => reader.seqs().at(-1) === seq);
      await server.cut();
      await house.passPause();
      server = await opened(house);
      expect(server.header("last-event-id")).toBe(String(seq));
    }
    expect(reader.seqs()).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  });

  test("G30: at every byte of an event, neither loses nor repeats it", async () => {
    await using house = await connected();
    const reader = listen(house);
    const whole = Buffer.from(eventText(1, { type: "inbox.added", item: { kind: "result", text: "né €😀" } }));
    let server = await opened(house);
    for (let bytes = 0; bytes < whole.length; bytes += 1) {
      server.say(whole.subarray(0, bytes));
      await server.cut();
      await house.passPause();
      server = await opened(house);
      // Nothing was heard, so it is asked for in the same words as at first.
      expect(server.line).toBe(`${STREAM}?after=0&deltas=without`);
      expect(server.header("last-event-id")).toBeUndefined();
    }
    server.say(whole).events(2);
    await reader.until(2);
    expect(reader.seqs()).toEqual([1, 2]);
  });

  test("waits as long as the server says, then ever longer, and begins anew once it was brought further", {
    meta: { id: "client/reconnect-backoff" },
  }, async () => {
    await using house = await connected();
    const reader = listen(house);
    const pauses: number[] = [];
    for (const seq of [1, undefined, undefined, 2]) {
      const server = await opened(house);
      if (seq !== undefined) server.events(seq);
      if (seq !== undefined) await until(() => reader.seqs().at(-1) === seq);
      await server.cut();
      pauses.push(await house.passPause());
    }
    // Half of 1000, 2000, …: the test's chance is always 0, and the server has said 1000.
    expect(pauses).toEqual([500, 1000, 2000, 500]);
  });

  test("by a server that says good-bye or just ends it is opened again", async () => {
    await using house = await connected();
    const reader = listen(house);
    const first = await opened(house);
    first.events(1).say('event: bye\ndata: {"reason":"shutting_down"}\n\n').events(2);
    await house.passPause();
    const second = await opened(house);
    expect(second.header("last-event-id")).toBe("1");
    second.events(2).end();
    await house.passPause();
    (await opened(house)).events(3);
    await reader.until(3);
    expect(reader.seqs()).toEqual([1, 2, 3]);
  });

  test("silently is noticed after three heartbeats, and not while there are any", {
    meta: { id: "client/silent-stream-detected" },
  }, async () => {
    await using house = await connected();
    const reader = listen(house);
    const silent = await opened(house);
    silent.events(1);
    await reader.until(1);
    await house.clock.advance(SILENCE_MS - 1);
    silent.say(": \n\n").events(2);
    await reader.until(2);
    await house.clock.advance(SILENCE_MS - 1);
    silent.events(3);
    await reader.until(3);
    await house.clock.advance(SILENCE_MS);
    await silent.left();
    await house.passPause();
    const again = await opened(house);
    expect(again.header("last-event-id")).toBe("3");
  });

  test("for longer than there is patience rejects with `disconnected`", async () => {
    await using house = await connected({ patienceMs: 3000 });
    const reader = listen(house);
    (await opened(house)).events(1);
    await reader.until(1);
    await house.server.die();
    while (house.clock.elapsed() < 3000) await house.passPause();
    await expect(reader.over).rejects.toMatchObject({ code: "disconnected" });
    expect(reader.seqs()).toEqual([1]);
  });
});

describe("a server at fault", () => {
  test("that repeats events is heard once", async () => {
    await using house = await connected();
    const reader = listen(house);
    (await opened(house)).events(1, 2, 1, 2, 2, 3);
    await reader.until(3);
    expect(reader.seqs()).toEqual([1, 2, 3]);
  });

  test("that skips an event is asked again from the last one heard", async () => {
    await using house = await connected();
    const reader = listen(house);
    const first = await opened(house);
    // In one piece, so that the hole is one jump and not several.
    first.say([1, 3, 4, 5, 6, 7].map((seq) => eventText(seq)).join(""));
    await first.left();
    await house.passPause();
    const second = await opened(house);
    expect(second.header("last-event-id")).toBe("1");
    second.events(2, 3);
    await reader.until(3);
    expect(reader.seqs()).toEqual([1, 2, 3]);
  });

  test("that skips it again and again is named, and nothing after the hole is handed on", async () => {
    await using house = await connected();
    const reader = listen(house);
    const pauses: number[] = [];
    for (let jump = 0; jump <= JUMPS_MAX; jump += 1) {
      (await opened(house)).say(eventText(1) + eventText(3));
      if (jump < JUMPS_MAX) pauses.push(await house.passPause());
    }
    expect(pauses).toEqual([500, 1000, 2000]);
    await expect(reader.over).rejects.toMatchObject({ code: "internal", message: expect.stringContaining("1 to 3") });
    expect(reader.seqs()).toEqual([1]);
  });

  test("that ends the stream because it has failed is tried again, but not for ever", async () => {
    await using house = await connected();
    const reader = listen(house);
    for (let fault = 0; fault <= FAULTS_MAX; fault += 1) {
      (await opened(house)).say('event: bye\ndata: {"reason":"store_corrupt"}\n\n');
      if (fault < FAULTS_MAX) await house.passPause();
    }
    await expect(reader.over).rejects.toMatchObject({ code: "store_corrupt" });
  });

  test.each(["data: nonsense\n\n", "data: 5\n\n", "data: {}\n\n", 'event: x\ndata: {"type":"x","seq":"1"}\n\n'])(
    "that sends %j is named",
    async (text) => {
      await using house = await connected();
      const reader = listen(house);
      (await opened(house)).say(text);
      await expect(reader.over).rejects.toMatchObject({ code: "internal" });
    },
  );

  test("that answers with something else than a stream is named", async () => {
    await using house = await connected({ patienceMs: 0 });
    const reader = listen(house);
    (await house.server.next(STREAM)).text(200, "hello", { "content-type": "text/plain" });
    await expect(reader.over).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining("text/plain"),
    });
  });
});

test("a stream that meets a page of a proxy is opened again", async () => {
  await using house = await connected();
  const reader = listen(house);
  (await house.server.next(STREAM)).text(200, "<h1>Back soon</h1>", { "content-type": "text/html" });
  await house.passPause();
  (await house.server.next(STREAM)).text(404, "default backend - 404");
  await house.passPause();
  (await opened(house)).events(1);
  await reader.until(1);
  expect(reader.seqs()).toEqual([1]);
});

describe("what a stream says besides events", () => {
  test("a gap is handed on, and what follows it is no jump", async () => {
    await using house = await connected();
    const reader = listen(house);
    const server = await opened(house);
    server.say('event: gap\ndata: {"type":"gap","from":1,"to":7}\n\n').events(8);
    await reader.until(2);
    expect(reader.heard[0]).toEqual({ type: "gap", from: 1, to: 7 });
    await server.cut();
    await house.passPause();
    expect((await opened(house)).header("last-event-id")).toBe("8");
  });

  test("text that was heard is not heard again after a cut, and what overlaps is trimmed", async () => {
    await using house = await connected();
    const reader = listen(house, { deltas: "with" });
    const first = await opened(house);
    first
      .say(deltaText("Hel", 0))
      .say(deltaText("hm", 0, "reasoning"))
      .say(deltaText("lo ", 3));
    await reader.until(3);
    await first.cut();
    await house.passPause();
    const second = await opened(house);
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
    // Nothing of this is new, and it makes nothing that follows look new.
    second.say(deltaText("Hello", 0)).say(deltaText(" world", 5)).events(1);
    await until(() => reader.seqs().length === 1);
    expect(reader.heard).toHaveLength(7);
  });

  test("a turn that is asked again says its text anew", async () => {
    await using house = await connected();
    const reader = listen(house, { deltas: "with" });
    const server = await opened(house);
    server.say(deltaText("Hello", 0)).say(eventText(1, { type: "run.recovered", runId: "run_1", attempt: 2 }));
    server.say(deltaText("Hell", 0)).say(eventText(2, { type: "turn.requested", runId: "run_1", turnId: "turn_1.1" }));
    server.say(deltaText("He", 0));
    await reader.until(5);
    expect(reader.said()).toBe("HelloHellHe");
  });

  test("text that was dropped on the way is not made up", async () => {
    await using house = await connected();
    const reader = listen(house, { deltas: "with" });
    (await opened(house)).say(deltaText("a", 0)).say(deltaText("z", 25));
    await reader.until(2);
    expect(reader.heard).toMatchObject([
      { text: "a", from: 0 },
      { text: "z", from: 25 },
    ]);
  });
});

describe("the end of a stream", () => {
  test("204 is the end", async () => {
    await using house = await connected();
    const reader = listen(house);
    (await house.server.next(STREAM)).text(204, "");
    await reader.over;
    expect(reader.heard).toEqual([]);
  });

  test.each([
    [400, "invalid"],
    [401, "unauthenticated"],
    [403, "forbidden"],
    [404, "not_found"],
  ])("%i is thrown to the reader", async (status, code) => {
    await using house = await connected();
    const reader = listen(house);
    (await house.server.next(STREAM)).error(status, code);
    await expect(reader.over).rejects.toMatchObject({ code });
    expect(house.server.heard).toHaveLength(1);
  });

  test.each([429, 503])("%i is not: it is tried again, when the server wants it", async (status) => {
    await using house = await connected();
    const reader = listen(house);
    (await house.server.next(STREAM)).error(status, "overloaded", { "retry-after": "3" });
    expect(await house.passPause()).toBe(3000);
    (await opened(house)).events(1);
    await reader.until(1);
  });

  test("G32: leaving the loop closes the connection and asks for nothing else", async () => {
    await using house = await connected();
    const left = (async () => {
      for await (const _ of house.client.session("ses_1").events()) return;
    })();
    const server = await opened(house);
    server.events(1, 2);
    await left;
    await server.left();
    expect(house.server.heard).toHaveLength(1);
    expect(house.clock.pending).toEqual([]);
  });

  test("a signal ends the loop without an error: while it waits, and between two connections", async () => {
    await using house = await connected();
    const stop = new AbortController();
    const reader = listen(house, { signal: stop.signal });
    const server = await opened(house);
    server.events(1);
    await reader.until(1);
    stop.abort();
    await reader.over;
    await server.left();
    const stopPause = new AbortController();
    const pausing = listen(house, { signal: stopPause.signal });
    await (await opened(house)).cut();
    await until(() => house.clock.pending.some(({ idle }) => !idle));
    stopPause.abort();
    await pausing.over;
    expect(house.clock.pending).toEqual([]);
  });

  test("close() ends it with a clear error", async () => {
    await using house = await connected();
    const reader = listen(house);
    const server = await opened(house);
    await house.client.close();
    await expect(reader.over).rejects.toMatchObject({
      code: "disconnected",
      message: expect.stringContaining("closed"),
    });
    await server.left();
  });

  test("a reader that takes its time is not cut off by its own watchdog", async () => {
    await using house = await connected();
    const events = house.client.session("ses_1").events();
    const first = events.next();
    const server = await opened(house);
    server.events(1);
    expect((await first).value).toMatchObject({ seq: 1 });
    await house.clock.advance(3 * SILENCE_MS);
    server.events(2);
    expect((await events.next()).value).toMatchObject({ seq: 2 });
    await events.return();
    expect(house.server.heard).toHaveLength(1);
  });
});
