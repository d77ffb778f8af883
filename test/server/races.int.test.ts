// Two clients and one run: whatever the order, exactly one outcome, and going away is no cancel.
import { connect } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import type { Recorded } from "../../src/core/model/event.ts";
import { Gate } from "../../src/testing/gate.ts";
import { logOf, untilAborted } from "../fixtures/belay.ts";
import { type Answer, openTestServer, type TestServer } from "../fixtures/server.ts";

const opened: TestServer[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((house) => house.close()));
});

async function open(acts: Parameters<typeof openTestServer>[0] = {}): Promise<TestServer> {
  const house = await openTestServer(acts);
  opened.push(house);
  return house;
}

const runOf = (answer: Answer): string => (answer.body as { runId: string }).runId;

/** How a run ended, as the log has it: all of its outcomes. */
async function outcomes(house: TestServer, session: string, run: string): Promise<readonly Recorded[]> {
  await house.ask("GET", `/v1/runs/${run}/outcome?waitMs=600000`);
  const log = await logOf(house.belay.session(session));
  return log.filter((event) => event.type === "run.settled" && event.runId === run);
}

describe("one prompts, another cancels right after the 202: exactly one outcome", () => {
  test.each([
    ["before its turn begins", "queued"],
    ["while its turn goes on", "running"],
    ["when it has ended", "settled"],
  ] as const)("%s", { meta: { id: "G14/cancel-race-one-outcome" } }, async (_, when) => {
    const free = new Gate();
    const house = await open({
      first: () => free.opened.then(() => "done"),
      second: (turn) => untilAborted(turn.signal),
      third: () => "done",
    });
    const { id } = await house.belay.createSession();
    const post = (prompt: string): Promise<Answer> =>
      house.ask("POST", `/v1/sessions/${id}/runs`, { body: { prompt }, token: "ann" });
    if (when === "queued") await post("first");
    const text = when === "settled" ? "third" : "second";
    const run = runOf(await post(text));
    if (when !== "queued") await house.began(text);
    if (when === "settled") await house.ask("GET", `/v1/runs/${run}/outcome?waitMs=600000`);
    const cancel = await house.ask("POST", `/v1/runs/${run}/cancel`, { token: "ben", body: { reason: "no" } });
    const expected = { queued: "withdrawn", running: "stopping", settled: "settled" } as const;
    expect(cancel.body).toMatchObject({ kind: expected[when] });
    const kind = when === "settled" ? "completed" : "cancelled";
    expect(await outcomes(house, id, run)).toMatchObject([{ outcome: { kind } }]);
    free.open();
    if (when !== "settled") expect(JSON.stringify(await logOf(house.belay.session(id)))).toContain('"by":"ben"');
  });

  test("in the same tick, 200 times: the receipt and the outcome agree", {
    meta: { id: "G10/receipt-agrees-with-outcome" },
  }, async () => {
    const house = await open();
    const { id } = await house.belay.createSession();
    for (let round = 0; round < 200; round += 1) {
      const run = runOf(await house.ask("POST", `/v1/sessions/${id}/runs`, { body: { prompt: `p${round}` } }));
      const cancel = await house.ask("POST", `/v1/runs/${run}/cancel`, { token: "ben" });
      const { kind } = cancel.body as { kind: string };
      const ends = await outcomes(house, id, run);
      const how = ends.flatMap((event) => (event.type === "run.settled" ? [event.outcome.kind] : []));
      expect([kind, ...how]).toSatisfy(
        ([receipt, ...rest]) => rest.length === 1 && rest[0] === (receipt === "settled" ? "completed" : "cancelled"),
      );
    }
  });
});

test("a cancel of the session covers what was sent before it on the same connection, and nothing after", async () => {
  const house = await open({ wait: (turn) => untilAborted(turn.signal) });
  const { id } = await house.belay.createSession();
  const head = (method: string, path: string, body: string): string =>
    `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1:${house.port}\r\nauthorization: Bearer ann\r\n` +
    `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  const runs = `/v1/sessions/${id}/runs`;
  const sent = [
    head("POST", runs, '{"prompt":"wait"}'),
    head("POST", runs, '{"prompt":"queued"}'),
    head("POST", `/v1/sessions/${id}/cancel`, "{}"),
    head("POST", runs, '{"prompt":"after"}'),
  ];
  // All in one packet: nobody has been answered when the next one arrives.
  const answers = await pipelined(house.port, sent.join(""), sent.length);
  const [first, second, , last] = answers.map((body) => JSON.parse(body));
  const ended = await Promise.all(
    [first, second, last].map(({ runId }) => outcomes(house, id, runId).then(([event]) => event)),
  );
  expect(ended).toMatchObject([
    { outcome: { kind: "cancelled" } },
    { outcome: { kind: "cancelled" } },
    { outcome: { kind: "completed" } },
  ]);
});

/** The bodies of so many answers on one connection. */
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

/** Sends a request and dies, after its last byte and before any answer. */
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

test("G2, G32: a client that dies right after its POST and sends it again with its key gets the same run", {
  meta: { id: "G2/retry-after-disconnect" },
}, async () => {
  const free = new Gate();
  const house = await open({ work: () => free.opened.then(() => "done") });
  const { id } = await house.belay.createSession();
  const body = '{"prompt":"work"}';
  const post =
    `POST /v1/sessions/${id}/runs HTTP/1.1\r\nhost: 127.0.0.1:${house.port}\r\nauthorization: Bearer ann\r\n` +
    `idempotency-key: k1\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  await sendAndDie(house.port, post);
  // The death of its sender does not keep it from being accepted.
  await house.began("work");
  const again = await house.ask("POST", `/v1/sessions/${id}/runs`, { body: { prompt: "work" }, key: "k1" });
  expect(again.body).toMatchObject({ repeated: true });
  const other = await house.ask("POST", `/v1/sessions/${id}/runs`, { body: { prompt: "else" }, key: "k1" });
  expect(other).toMatchObject({ status: 409, body: { error: { code: "conflict" } } });
  free.open();
  expect(await outcomes(house, id, runOf(again))).toMatchObject([{ outcome: { kind: "completed" } }]);
  expect(house.begun).toEqual(["work"]);
});

test("G32: somebody who waits for an outcome and leaves cancels nothing", async () => {
  const free = new Gate();
  const house = await open({ work: () => free.opened.then(() => "done") });
  const run = runOf(await house.ask("POST", "/v1/runs", { body: { prompt: "work" } }));
  await house.began("work");
  const wait =
    `GET /v1/runs/${run}/outcome?waitMs=600000 HTTP/1.1\r\nhost: 127.0.0.1:${house.port}\r\n` +
    "authorization: Bearer ann\r\n\r\n";
  await sendAndDie(house.port, wait);
  while (house.listener.connections > 1) await new Promise((resolve) => setImmediate(resolve));
  expect((await house.ask("GET", `/v1/runs/${run}`)).body).toMatchObject({ phase: "live" });
  free.open();
  expect((await house.ask("GET", `/v1/runs/${run}/outcome?waitMs=600000`)).body).toMatchObject({
    outcome: { kind: "completed" },
  });
});

test("G7: a cancel by its key reaches a prompt that is sent with it, and is the same when sent twice", async () => {
  const house = await open({ wait: (turn) => untilAborted(turn.signal) });
  const { id } = await house.belay.createSession();
  const [prompted, cancelled] = await Promise.all([
    house.ask("POST", `/v1/sessions/${id}/runs`, { body: { prompt: "wait" }, key: "mine" }),
    house.began("wait").then(() => house.ask("POST", `/v1/sessions/${id}/prompts/mine/cancel`, { key: "stop" })),
  ]);
  expect(cancelled.body).toMatchObject({ kind: "stopping", first: true, runId: runOf(prompted) });
  const again = await house.ask("POST", `/v1/sessions/${id}/prompts/mine/cancel`, { key: "stop" });
  expect(again.body).toEqual(cancelled.body);
  expect(await outcomes(house, id, runOf(prompted))).toHaveLength(1);
});

test("G36: every control request is in the audit trail: who asked, what for, what they were told", async () => {
  const house = await open({ wait: (turn) => untilAborted(turn.signal) });
  const created = await house.ask("POST", "/v1/sessions", { body: { id: "ses_a" } });
  await house.ask("GET", "/v1/sessions/ses_a");
  const run = runOf(await house.ask("POST", "/v1/sessions/ses_a/runs", { body: { prompt: "wait" } }));
  await house.began("wait");
  await house.ask("POST", `/v1/runs/${run}/cancel`, { body: { reason: "too slow", waitMs: 60_000 }, token: "ben" });
  await house.ask("POST", "/v1/sessions/ses_a/runs", { body: { promt: "x" } });
  await house.ask("POST", "/v1/sessions", { body: {}, token: "stranger" });
  expect(house.audit).toMatchObject([
    { id: created.headers["x-request-id"], actor: "ann", via: "http", action: "create-session", target: "ses_a" },
    { actor: "ann", action: "prompt", target: "ses_a", answer: "accepted" },
    { actor: "ben", action: "cancel-run", target: run, answer: "stopping", note: "too slow" },
    { actor: "ann", action: "prompt", target: "ses_a", answer: "refused", code: "invalid" },
    { actor: "nobody", action: "create-session", answer: "refused", code: "unauthenticated" },
  ]);
  expect(house.audit).toHaveLength(5);
});

test("G7: a cancel of everything that is sent again under its key stops nothing that came later", async () => {
  const house = await open({ before: (turn) => untilAborted(turn.signal), after: (turn) => untilAborted(turn.signal) });
  const { id } = await house.belay.createSession();
  const post = async (prompt: string): Promise<string> => {
    const run = runOf(await house.ask("POST", `/v1/sessions/${id}/runs`, { body: { prompt } }));
    await house.began(prompt);
    return run;
  };
  const before = await post("before");
  const first = await house.ask("POST", "/v1/cancel", { body: { waitMs: 60_000 }, key: "all" });
  expect(first.text).toContain(before);
  const after = await post("after");
  const again = await house.ask("POST", "/v1/cancel", { body: { waitMs: 60_000 }, key: "all" });
  expect(again).toMatchObject({ status: 200, body: first.body });
  expect((await house.ask("GET", `/v1/runs/${after}/outcome`)).status).toBe(202);
  const other = await house.ask("POST", "/v1/cancel", { body: { reason: "other" }, key: "all" });
  expect(other.status).toBe(409);
});
