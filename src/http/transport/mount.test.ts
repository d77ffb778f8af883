// Belay mounted in a host, from the view of the host's clients.
import { createServer } from "node:http";
import { Duplex } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { openTestBelay } from "../../../test/fixtures/belay.ts";
import { manualClock } from "../../testing/manual-clock.ts";
import { Guard } from "../auth/guard.ts";
import { makeHandler } from "../handler.ts";
import { READER_STALL_MS } from "../limits.ts";
import { type Actor, TOKEN_SCOPES } from "./http-exchange.ts";
import { Mount } from "./mount.ts";

const STREAMS = 32;
const PATH = "/v1/sessions/ses_long/events?after=0";
const HEADERS = { host: "127.0.0.1:1", authorization: "Bearer x" };

/** Sends one request, and reads only the first `takes` writes of the response. */
class Reader extends Duplex {
  text = "";
  #takes: number;

  constructor(takes: number) {
    super();
    this.#takes = takes;
    const lines = Object.entries(HEADERS).map(([name, value]) => `${name}: ${value}\r\n`);
    this.push(`GET ${PATH} HTTP/1.1\r\n${lines.join("")}\r\n`);
  }

  override _read(): void {}

  override _write(chunk: Buffer, _: string, done: () => void): void {
    this.text += chunk.toString("latin1");
    this.#takes -= 1;
    if (this.#takes > 0) done();
  }
}

async function mounted() {
  const { belay } = await openTestBelay({});
  onTestFinished(async () => void (await belay.close({ mode: "cancel" })));
  const session = await belay.createSession({ id: "ses_long" });
  // More than a response buffers before backpressure.
  for (let count = 0; count < 4; count += 1) await session.prompt("x".repeat(60_000)).accepted;
  const clock = manualClock();
  const actor: Actor = { name: "ann", scopes: new Set(TOKEN_SCOPES), tenant: undefined };
  const guard = new Guard({ tokens: { verify: () => actor }, clock, streamsPerToken: STREAMS });
  guard.serves({ scheme: "http", port: 1 });
  const handler = makeHandler({ control: belay, guard, clock, version: "0" });
  return { clock, mount: new Mount(handler.handle, { clock }) };
}

test("G40: 32 web readers that read nothing are disconnected, and the 33rd is served", async () => {
  const { clock, mount } = await mounted();
  const ask = (): Promise<Response> => mount.fetch(new Request(`http://127.0.0.1:1${PATH}`, { headers: HEADERS }));
  const stalled = await Promise.all(Array.from({ length: STREAMS }, ask));
  expect(new Set(stalled.map(({ status }) => status))).toEqual(new Set([200]));
  expect((await ask()).status).toBe(429);
  await clock.advance(READER_STALL_MS);
  const served = await ask();
  expect(served.status).toBe(200);
  await served.body?.cancel();
});

test("G40: 32 Node.js readers that read nothing are disconnected, and the 33rd is served", async () => {
  const { clock, mount } = await mounted();
  const server = createServer((message, response) => void mount.node(message, response));
  const ask = async (takes: number): Promise<Reader> => {
    const reader = new Reader(takes);
    onTestFinished(() => void reader.destroy());
    reader.on("error", () => {});
    server.emit("connection", reader);
    await expect.poll(() => reader.text).toContain("\r\n\r\n");
    return reader;
  };
  const stalled: Reader[] = [];
  for (let count = 0; count < STREAMS; count += 1) stalled.push(await ask(1));
  expect((await ask(100)).text).toContain("HTTP/1.1 429");
  await clock.advance(READER_STALL_MS);
  await expect.poll(() => stalled.filter(({ destroyed }) => !destroyed)).toEqual([]);
  expect((await ask(100)).text).toContain("HTTP/1.1 200");
});
