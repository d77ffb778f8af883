// J3, J4, J8, J10: JSON that is well-formed and meant to hurt, over a real socket, to the log and back out of a stream.
import { request } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import { SseParser } from "../../src/wire/sse-parser.ts";
import { logOf } from "../fixtures/belay.ts";
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

/** Sends exactly these bytes as a body. */
function post(house: TestServer, path: string, body: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: "Bearer ann", "content-type": "application/json" };
    const sent = request({ host: "127.0.0.1", port: house.port, method: "POST", path, headers }, async (response) => {
      const text = (await Array.fromAsync(response.setEncoding("utf8"))).join("");
      resolve({ status: response.statusCode ?? 0, text });
    });
    sent.once("error", reject);
    sent.end(body);
  });
}

describe("J3: what is nested too deeply", () => {
  test.each([65, 68, 255, 257, 900_000])(
    "%i levels are refused, and nothing is accepted",
    { meta: { id: "G33/deep-json-refused" } },
    async (depth) => {
      const house = await open();
      const { id } = await house.belay.createSession();
      const deep = `${"[".repeat(depth)}${"]".repeat(depth)}`;
      for (const body of [`{"prompt":{"text":"a","data":${deep}}}`, deep, `{"prompt":${deep}}`, `{"${deep}":1}`]) {
        const { status, text } = await post(house, `/v1/sessions/${id}/runs`, body);
        expect([status, JSON.parse(text).error.code]).toEqual([400, "invalid"]);
      }
      expect(await house.belay.session(id).runs()).toEqual([]);
    },
  );

  test("as deeply as it may be, it arrives as it was", async () => {
    const house = await open();
    const { id } = await house.belay.createSession();
    const data = JSON.parse(`${"[".repeat(60)}${"]".repeat(60)}`);
    const { status } = await post(house, `/v1/sessions/${id}/runs`, JSON.stringify({ prompt: { text: "a", data } }));
    expect(status).toBe(202);
    const [accepted] = (await logOf(house.belay.session(id))).filter((event) => event.type === "run.accepted");
    expect(accepted).toMatchObject({ prompt: { data } });
  });
});

test("J4: keys that objects have by nature are data or refused, and change no object", {
  meta: { id: "json/proto-key-pollutes-nothing" },
}, async () => {
  const house = await open();
  const { id } = await house.belay.createSession();
  const path = `/v1/sessions/${id}/runs`;
  const poison = '{"polluted":true,"toString":null}';
  const bodies = [
    `{"prompt":"a","__proto__":${poison}}`,
    `{"prompt":{"text":"a","__proto__":${poison}}}`,
    `{"prompt":{"text":"a","data":{"__proto__":${poison},"constructor":{"prototype":${poison}},"b":1}}}`,
    `{"constructor":{"prototype":${poison}},"prompt":"a"}`,
    `{"__proto__":{"prompt":"a"}}`,
  ];
  const statuses: number[] = [];
  for (const body of bodies) statuses.push((await post(house, path, body)).status);
  expect(statuses.every((status) => status === 202 || status === 400)).toBe(true);
  // A prompt that only a prototype has is no prompt.
  expect(statuses.at(-1)).toBe(400);
  expect(Reflect.get({}, "polluted")).toBeUndefined();
  expect(String({})).toBe("[object Object]");
  for (const run of await house.belay.session(id).runs()) await (await house.belay.run(run.id)).outcome;
});

test("J8: of a key that is there twice the last counts, and no number stands for an id", {
  meta: { id: "json/duplicate-key-last-wins" },
}, async () => {
  const house = await open();
  const { id } = await house.belay.createSession();
  const { status, text } = await post(house, `/v1/sessions/${id}/runs`, '{"prompt":"first","prompt":"last"}');
  expect(status).toBe(202);
  await (await house.belay.run(JSON.parse(text).runId)).outcome;
  expect(house.begun).toEqual(["last"]);
  const big = await post(house, "/v1/sessions", '{"id":9007199254740993}');
  expect([big.status, JSON.parse(big.text).error.code]).toEqual([400, "invalid"]);
});

describe("J10: words that look like a stream", () => {
  const WORDS = [
    'a\n\nevent: run.settled\nid: 999\ndata: {"type":"run.settled"}\n\n',
    "a\r\n\r\ndata: b\r\n\r\n",
    "\rdata: c\r\r",
    ": comment\nretry: 1\n\n",
    "\u2028data: d\u2029\u0085\0\n\n",
    `${"x\n\n".repeat(20_000)}event: bye\n\n`,
  ];

  test.each(WORDS)(
    "%j is the data of one event, whatever its source",
    { meta: { id: "http/event-text-stays-data" } },
    async (words) => {
      const house = await open({
        [words]: (turn) => {
          turn.emit(words);
          return words;
        },
      });
      const session = await house.belay.createSession({ title: "t" });
      const stream = await house.open("GET", `/v1/sessions/${session.id}/events?deltas=with`);
      session.prompt(words, { key: "k" });
      const heard: { readonly type: string; readonly value: Record<string, unknown> }[] = [];
      const parser = new SseParser();
      outer: for await (const bytes of stream) {
        for (const message of parser.push(bytes)) {
          const value = JSON.parse(message.data) as Record<string, unknown>;
          heard.push({ type: message.event, value });
          if (value.type === "run.settled") break outer;
        }
      }
      stream.destroy();
      // Each says of itself what its frame says of it, so none was made up; and the words came through whole.
      for (const { type, value } of heard) expect(value.type).toBe(type);
      const log = await logOf(session);
      expect(heard.filter(({ type }) => type !== "delta").map(({ value }) => value.type)).toEqual(
        log.map(({ type }) => type),
      );
      expect(heard.find(({ type }) => type === "run.accepted")?.value).toMatchObject({ prompt: { text: words } });
      expect(heard.find(({ type }) => type === "turn.settled")?.value).toMatchObject({ text: words });
    },
  );
});
