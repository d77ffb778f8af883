// Two clients and one run: exactly one outcome in any order, and a disconnect is not a cancel.
import { connect } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import type { Recorded } from "../../src/core/model/event.ts";
import { Gate } from "../../src/testing/gate.ts";
import { logOf, untilAborted } from "../fixtures/belay.ts";
import { type Answer, openTestServer, type TestServer } from "../fixtures/server.ts";

const opened: TestServer[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((server) => server.close()));
});

async function open(acts: Parameters<typeof openTestServer>[0] = {}): Promise<TestServer> {
  const server = await openTestServer(acts);
  opened.push(server);
  return server;
}

const runOf = (answer: Answer): string => (answer.body as { runId: string }).runId;

/** All outcomes of a run in the log. */
async function outcomes(server: TestServer, session: string, run: string): Promise<readonly Recorded[]> {
  await server.ask("GET", `/v1/runs/${run}/outcome?waitMs=600000`);
  const log = await logOf(server.belay.session(session));
  return log.filter((event) => event.type === "run.settled" && event.runId === run);
}

describe("a prompt that another client cancels right after the 202 has exactly one outcome", () => {
  test.each([
    ["before its turn begins", "queued"],
    ["during its turn", "running"],
    ["after its end", "settled"],
  ] as const)("%s", { meta: { id: "G14/cancel-race-one-outcome" } }, async (_, when) => {
    const free = new Gate();
    const server = await open({
      first: () => free.opened.then(() => "done"),
      second: (turn) => untilAborted(turn.signal),
      third: () => "done",
    });
    const { id } = await server.belay.createSession();
    const post = (prompt: string): Promise<Answer> =>
      server.ask("POST", `/v1/sessions/${id}/runs`, { body: { prompt }, token: "ann" });
    if (when === "queued") await post("first");
    const text = when === "settled" ? "third" : "second";
    const run = runOf(await post(text));
    if (when !== "queued") await server.began(text);
    if (when === "settled") await server.ask("GET", `/v1/runs/${run}/outcome?waitMs=600000`);
    const cancel = await server.ask("POST", `/v1/runs/${run}/cancel`, { token: "ben", body: { reason: "no" } });
    const expected = { queued: "withdrawn", running: "stopping", settled: "settled" } as const;
    expect(cancel.body).toMatchObject({ kind: expected[when] });
    const kind = when === "settled" ? "completed" : "cancelled";
    expect(await outcomes(server, id, run)).toMatchObject([{ outcome: { kind } }]);
    free.open();
    if (when !== "settled") expect(JSON.stringify(await logOf(server.belay.session(id)))).toContain('"by":"ben"');
  });

  test("in the same tick, 200 times, and the receipt agrees with it", {
    meta: { id: "G10/receipt-agrees-with-outcome" },
  }, async () => {
    const server = await open();
    const { id } = await server.belay.createSession();
    for (let round = 0; round < 200; round += 1) {
      const run = runOf(await server.ask("POST", `/v1/sessions/${id}/runs`, { body: { prompt: `p${round}` } }));
      const cancel = await server.ask("POST", `/v1/runs/${run}/cancel`, { token: "ben" });
      const { kind } = cancel.body as { kind: string };
      const ends = await outcomes(server, id, run);
      const how = ends.flatMap((event) => (event.type === "run.settled" ? [event.outcome.kind] : []));
      expect([kind, ...how]).toSatisfy(
        ([receipt, ...rest]) => rest.length === 1 && rest[0] === (receipt === "settled" ? "completed" : "cancelled"),
      );
    }
  });
});

test("a cancel of a session covers the prompts sent before it on the same connection, and none after", async () => {
  const server = await open({ wait: (turn) => untilAborted(turn.signal) });
  const { id } = await server.belay.createSession();
  const head = (method: string, path: string, body: string): string =>
    `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1:${server.port}\r\nauthorization: Bearer ann\r\n` +
    `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  const runs = `/v1/sessions/${id}/runs`;
  const sent = [
    head("POST", runs, '{"prompt":"wait"}'),
    head("POST", runs, '{"prompt":"queued"}'),
    head("POST", `/v1/sessions/${id}/cancel`, "{}"),
    head("POST", runs, '{"prompt":"after"}'),
  ];
  // All in one packet: no request is answered when the next one arrives.
  const answers = await pipelined(server.port, sent.join(""), sent.length);
  const [first, second, , last] = answers.map((body) => JSON.parse(body));
  const ended = await Promise.all(
    [first, second, last].map(({ runId }) => outcomes(server, id, runId).then(([event]) => event)),
  );
  expect(ended).toMatchObject([
    { outcome: { kind: "cancelled" } },
    { outcome: { kind: "cancelled" } },
    { outcome: { kind: "completed" } },
  ]);
});

/** The bodies of `count` responses on one connection. */
function pipelined(port: number, bytes: string, count: number): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    let text = "";
    socket.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
      const bodies = [...text.matchAll(/\r\n\r\n(\{.*\})/g)].map(([, body = ""]) => body);
      if (bodies.length < count) return;
      socket.destroy();
      resolve(bodies);
    });
    socket.on("error", reject);
  });
}

/** Sends a request and resets the connection after its last byte, before any response. */
function sendAndDie(port: number, bytes: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.write(bytes, () => {
        socket.resetAndDestroy();
        resolve();
      });
    });
    socket.on("error", reject);
  });
}

test("G2, G32: a client that disconnects after its POST and repeats it with its key gets the same run", {
  meta: { id: "G2/retry-after-disconnect" },
}, async () => {
  const free = new Gate();
  const server = await open({ work: () => free.opened.then(() => "done") });
  const { id } = await server.belay.createSession();
  const body = '{"prompt":"work"}';
  const post =
    `POST /v1/sessions/${id}/runs HTTP/1.1\r\nhost: 127.0.0.1:${server.port}\r\nauthorization: Bearer ann\r\n` +
    `idempotency-key: k1\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  await sendAndDie(server.port, post);
  // It is accepted although its sender has disconnected.
  await server.began("work");
  const again = await server.ask("POST", `/v1/sessions/${id}/runs`, { body: { prompt: "work" }, key: "k1" });
  expect(again.body).toMatchObject({ repeated: true });
  const other = await server.ask("POST", `/v1/sessions/${id}/runs`, { body: { prompt: "else" }, key: "k1" });
  expect(other).toMatchObject({ status: 409, body: { error: { code: "conflict" } } });
  free.open();
  expect(await outcomes(server, id, runOf(again))).toMatchObject([{ outcome: { kind: "completed" } }]);
  expect(server.begun).toEqual(["work"]);
});

test("G32: a client that waits for an outcome and disconnects cancels nothing", async () => {
  const free = new Gate();
  const server = await open({ work: () => free.opened.then(() => "done") });
  const run = runOf(await server.ask("POST", "/v1/runs", { body: { prompt: "work" } }));
  await server.began("work");
  const wait =
    `GET /v1/runs/${run}/outcome?waitMs=600000 HTTP/1.1\r\nhost: 127.0.0.1:${server.port}\r\n` +
    "authorization: Bearer ann\r\n\r\n";
  await sendAndDie(server.port, wait);
  while (server.listener.connections > 1) await new Promise((resolve) => setImmediate(resolve));
  expect((await server.ask("GET", `/v1/runs/${run}`)).body).toMatchObject({ phase: "live" });
  free.open();
  expect((await server.ask("GET", `/v1/runs/${run}/outcome?waitMs=600000`)).body).toMatchObject({
    outcome: { kind: "completed" },
  });
});

test("G7: a cancel by key stops a prompt that is sent concurrently, and is idempotent", async () => {
  const server = await open({ wait: (turn) => untilAborted(turn.signal) });
  const { id } = await server.belay.createSession();
  const [prompted, cancelled] = await Promise.all([
    server.ask("POST", `/v1/sessions/${id}/runs`, { body: { prompt: "wait" }, key: "mine" }),
    server.began("wait").then(() => server.ask("POST", `/v1/sessions/${id}/prompts/mine/cancel`, { key: "stop" })),
  ]);
  expect(cancelled.body).toMatchObject({ kind: "stopping", first: true, runId: runOf(prompted) });
  const again = await server.ask("POST", `/v1/sessions/${id}/prompts/mine/cancel`, { key: "stop" });
  expect(again.body).toEqual(cancelled.body);
  expect(await outcomes(server, id, runOf(prompted))).toHaveLength(1);
});

test("G36: every control request is in the audit trail with its actor, action and result", async () => {
  const server = await open({ wait: (turn) => untilAborted(turn.signal) });
  const created = await server.ask("POST", "/v1/sessions", { body: { id: "ses_a" } });
  await server.ask("GET", "/v1/sessions/ses_a");
  const run = runOf(await server.ask("POST", "/v1/sessions/ses_a/runs", { body: { prompt: "wait" } }));
  await server.began("wait");
  await server.ask("POST", `/v1/runs/${run}/cancel`, { body: { reason: "too slow", waitMs: 60_000 }, token: "ben" });
  await server.ask("POST", "/v1/sessions/ses_a/runs", { body: { promt: "x" } });
  await server.ask("POST", "/v1/sessions", { body: {}, token: "stranger" });
  expect(server.audit).toMatchObject([
    { id: created.headers["x-request-id"], actor: "ann", via: "http", action: "create-session", target: "ses_a" },
    { actor: "ann", action: "prompt", target: "ses_a", answer: "accepted" },
    { actor: "ben", action: "cancel-run", target: run, answer: "stopping", note: "too slow" },
    { actor: "ann", action: "prompt", target: "ses_a", answer: "refused", code: "invalid" },
    { actor: "nobody", action: "create-session", answer: "refused", code: "unauthenticated" },
  ]);
  expect(server.audit).toHaveLength(5);
});

test("G7: a cancel of everything that is repeated with its key stops no later run", async () => {
  const server = await open({
    before: (turn) => untilAborted(turn.signal),
    after: (turn) => untilAborted(turn.signal),
  });
  const { id } = await server.belay.createSession();
  const post = async (prompt: string): Promise<string> => {
    const run = runOf(await server.ask("POST", `/v1/sessions/${id}/runs`, { body: { prompt } }));
    await server.began(prompt);
    return run;
  };
  const before = await post("before");
  const first = await server.ask("POST", "/v1/cancel", { body: { waitMs: 60_000 }, key: "all" });
  expect(first.text).toContain(before);
  const after = await post("after");
  const again = await server.ask("POST", "/v1/cancel", { body: { waitMs: 60_000 }, key: "all" });
  expect(again).toMatchObject({ status: 200, body: first.body });
  expect((await server.ask("GET", `/v1/runs/${after}/outcome`)).status).toBe(202);
  const other = await server.ask("POST", "/v1/cancel", { body: { reason: "other" }, key: "all" });
  expect(other.status).toBe(409);
});
