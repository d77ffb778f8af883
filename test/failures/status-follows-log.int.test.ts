// C10, B5, B6: who has heard of an end finds it wherever they look, and nobody is kept from hearing of it.
import { connect, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { Gate } from "../../src/testing/gate.ts";
import { SseParser } from "../../src/wire/sse-parser.ts";
import { untilAborted } from "../fixtures/belay.ts";
import { openTestServer, type TestServer } from "../fixtures/server.ts";

const opened: TestServer[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((house) => house.close()));
});

async function open(acts: Parameters<typeof openTestServer>[0] = {}): Promise<TestServer> {
  const house = await openTestServer(acts);
  opened.push(house);
  return house;
}

interface Heard {
  readonly seq: number;
  readonly type: string;
  readonly runId?: string;
}

/** The facts of a stream, as they come. */
async function* factsOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Heard> {
  const parser = new SseParser();
  for await (const bytes of stream) {
    for (const { data } of parser.push(bytes)) {
      const value = JSON.parse(data) as Heard;
      if (typeof value.seq === "number") yield value;
    }
  }
}

test("C10: a client that has received an outcome, or a start, sees it in every later answer", {
  timeout: 60_000,
  meta: { id: "G29/answers-never-older-than-events" },
}, async () => {
  const house = await open({ wait: (turn) => untilAborted(turn.signal) });
  const { id } = await house.belay.createSession();
  const stream = await house.open("GET", `/v1/sessions/${id}/events`);
  const facts = factsOf(stream);
  const until = async (type: string, runId: string): Promise<number> => {
    for (;;) {
      const { value } = await facts.next();
      if (value?.type === type && value.runId === runId) return value.seq;
    }
  };
  for (let round = 0; round < 50; round += 1) {
    const prompt = round % 2 === 0 ? "wait" : `run ${round}`;
    const posted = await house.ask("POST", `/v1/sessions/${id}/runs`, { body: { prompt } });
    const { runId } = posted.body as { readonly runId: string };
    if (prompt === "wait") {
      const startedAt = await until("run.started", runId);
      const busy = (await house.ask("GET", `/v1/sessions/${id}/explain`)).body as { readonly asOf: number };
      expect(busy).toMatchObject({ live: { runId } });
      expect(busy.asOf).toBeGreaterThanOrEqual(startedAt);
      await house.ask("POST", `/v1/runs/${runId}/cancel`);
    }
    const endedAt = await until("run.settled", runId);
    const [explained, row, live, outcome] = await Promise.all(
      [`/v1/sessions/${id}/explain`, `/v1/runs/${runId}`, "/v1/live", `/v1/runs/${runId}/outcome`].map((path) =>
        house.ask("GET", path),
      ),
    );
    const idle = explained?.body as { readonly asOf: number; readonly live?: unknown };
    expect([idle.live, idle.asOf >= endedAt]).toEqual([undefined, true]);
    expect(row?.body).toMatchObject({ phase: "settled" });
    expect(live?.text).not.toContain(runId);
    expect([outcome?.status, outcome?.text.includes('"outcome"')]).toEqual([200, true]);
  }
  stream.destroy();
});

/** Reads nothing until it is told to. */
function dial(house: TestServer, path: string): Socket {
  const socket = connect(house.port, "127.0.0.1");
  socket.pause();
  socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${house.port}\r\nauthorization: Bearer ann\r\n\r\n`);
  return socket;
}

test("B5, B6: a reader that has slept through everything still hears of every outcome, in order", {
  timeout: 60_000,
  meta: { id: "G31/late-reader-receives-every-outcome" },
}, async () => {
  const house = await open();
  const session = await house.belay.createSession();
  const socket = dial(house, `/v1/sessions/${session.id}/events`);
  while (house.handler.streams === 0) await new Promise((resolve) => setImmediate(resolve));
  // Far more than anybody buffers: a queue of its own would have been full long before.
  const runs = [];
  for (let count = 0; count < 16; count += 1) {
    const run = session.prompt('"'.repeat(512 * 1024));
    await run.outcome;
    runs.push(run.id);
  }
  const { head } = await session.row();
  const all = new Gate<string>();
  const pieces: string[] = [];
  socket.setEncoding("utf8").on("data", (piece: string) => {
    pieces.push(piece);
    if (pieces.slice(-2).join("").includes(`\nid: ${head}\n`)) all.open(pieces.join(""));
  });
  socket.resume();
  const text = await all.opened;
  const ids = [...text.matchAll(/^id: (\d+)\r?$/gm)].map(([, seq]) => Number(seq));
  expect(ids).toEqual(Array.from({ length: head }, (_, index) => index + 1));
  const ends = [...text.matchAll(/"type":"run.settled","runId":"([^"]+)"/g)].map(([, runId]) => runId);
  expect(ends).toEqual(runs);
  socket.destroy();
});
