import { describe, expect, test } from "vitest";
import { connected } from "../../test/fixtures/connected-client.ts";
import type { Exchange } from "../../test/fixtures/scripted-server.ts";
import { WAIT_PIECE_MS } from "./limits.ts";

const PROMPT = "POST /v1/sessions/ses_1/runs";
const CANCEL = "POST /v1/sessions/ses_1/cancel";
const STOPPING = { kind: "stopping", since: 4, first: true };
const IDLE = { kind: "idle", runs: [] };
const SETTLED = { kind: "settled", outcome: { kind: "completed" } };

const accept = (exchange: Exchange, runId: string, sessionId = "ses_1"): void =>
  exchange.json(202, { kind: "accepted", runId, sessionId, seq: 2, joined: "queue", ahead: 0, repeated: false });

describe("G7: a cancel of a session", () => {
  test("does not wait for prompts, and names those without a response, sent or not", async () => {
    await using fixture = await connected();
    const session = fixture.client.session("ses_1");
    session.prompt("a", { key: "a" });
    session.prompt("b", { key: "b" });
    const cancelled = session.cancel({ reason: "enough" });
    const first = await fixture.server.next(PROMPT);
    const cancel = await fixture.server.next(CANCEL);
    expect(cancel.body).toEqual({ reason: "enough", prompts: ["a", "b"] });
    const receipt = { kind: "withdrawn", runs: [{ runId: "run_a", receipt: { kind: "withdrawn" } }], prompts: ["b"] };
    cancel.json(200, receipt);
    expect(await cancelled).toEqual(receipt);
    accept(first, "run_a");
    // It is sent all the same, accepted and withdrawn, so its handle has an outcome.
    accept(await fixture.server.next(PROMPT), "run_b");
    expect(fixture.server.heard).toEqual([PROMPT, CANCEL, PROMPT]);
  });

  test("by the key of a held-back prompt is marked as early, because that prompt has not arrived", async () => {
    await using fixture = await connected();
    const session = fixture.client.session("ses_1");
    session.prompt("a");
    session.prompt("b", { key: "k" });
    const cancelled = session.cancelPrompt("k");
    const cancel = await fixture.server.next("POST /v1/sessions/ses_1/prompts/k/cancel");
    expect(cancel.body).toEqual({ early: true });
    cancel.json(200, { kind: "withdrawn" });
    expect(await cancelled).toEqual({ kind: "withdrawn" });
  });

  test("does not affect a later prompt, which is sent once the cancel is recorded", async () => {
    await using fixture = await connected();
    const session = fixture.client.session("ses_1");
    const cancelled = session.cancel({ waitMs: 60_000 });
    const run = session.prompt("after");
    const recorded = await fixture.server.next(CANCEL);
    expect(recorded.body).toEqual({});
    expect(fixture.server.heard).toEqual([CANCEL]);
    recorded.json(200, { kind: "stopping", runs: [{ runId: "run_a", receipt: STOPPING }] });
    // The prompt does not wait for the end of the cancelled run.
    accept(await fixture.server.next(PROMPT), "run_after");
    expect(await run.accepted).toMatchObject({ runId: "run_after" });
    const wait = await fixture.server.next(CANCEL);
    expect(wait.body).toEqual({ waitMs: WAIT_PIECE_MS });
    expect(wait.header("idempotency-key")).toBe(recorded.header("idempotency-key"));
    const ended = { kind: "settled", outcome: { kind: "cancelled", reason: { kind: "user" } } };
    wait.json(200, { kind: "stopping", runs: [{ runId: "run_a", receipt: { ...STOPPING, ended } }] });
    expect(await cancelled).toEqual({ kind: "stopping", runs: [{ runId: "run_a", receipt: { ...STOPPING, ended } }] });
  });

  test("holds up later prompts only until it has failed", async () => {
    await using fixture = await connected();
    const session = fixture.client.session("ses_1");
    const cancelled = session.cancel();
    const run = session.prompt("after");
    (await fixture.server.next(CANCEL)).error(403, "forbidden");
    await expect(cancelled).rejects.toMatchObject({ code: "forbidden" });
    accept(await fixture.server.next(PROMPT), "run_1");
    await run.accepted;
  });

  test("that is repeated under its key covers nothing that was prompted after the first", async () => {
    await using fixture = await connected();
    const session = fixture.client.session("ses_1");
    const once = session.cancel({ key: "stop" });
    (await fixture.server.next(CANCEL)).json(200, IDLE);
    await once;
    const newer = session.prompt("newer");
    const prompt = await fixture.server.next(PROMPT);
    const again = session.cancel({ key: "stop" });
    (await fixture.server.next(CANCEL)).json(200, IDLE);
    expect(await again).toEqual(IDLE);
    accept(prompt, "run_newer");
    await newer.accepted;
    expect(fixture.server.heard).toEqual([CANCEL, PROMPT, CANCEL]);
  });

  test("does not name prompts that were refused or accepted", async () => {
    await using fixture = await connected();
    const session = fixture.client.session("ses_1");
    const runs = [session.prompt("refused"), session.prompt("accepted")];
    (await fixture.server.next(PROMPT)).error(409, "busy");
    accept(await fixture.server.next(PROMPT), "run_1");
    await Promise.allSettled(runs.map(({ accepted }) => accepted));
    const cancelled = session.cancel();
    const cancel = await fixture.server.next(CANCEL);
    expect(cancel.body).toEqual({});
    cancel.json(200, IDLE);
    expect(await cancelled).toEqual(IDLE);
  });
});

describe("a cancel of everything", () => {
  test("covers this client's prompts in flight, including those that create their own session", async () => {
    await using fixture = await connected();
    fixture.client.session("ses_1").prompt("a", { key: "a" });
    fixture.client.prompt("b", { key: "b" });
    const cancelled = fixture.client.cancelAll({ reason: "stop", background: "keep" });
    const after = fixture.client.session("ses_2").prompt("after");
    const all = await fixture.server.next("POST /v1/cancel");
    const named = [{ sessionId: "ses_1", key: "a" }, { key: "b" }];
    expect(all.body).toEqual({ reason: "stop", background: "keep", prompts: named });
    const prompts = [await fixture.server.next(PROMPT), await fixture.server.next("POST /v1/runs")];
    expect(fixture.server.heard).toHaveLength(3);
    const receipts = [{ sessionId: "ses_7", receipt: { kind: "withdrawn", runs: [], prompts: ["b"] } }];
    all.json(200, { sessions: receipts });
    expect(await cancelled).toEqual(receipts);
    for (const [index, prompt] of prompts.entries()) accept(prompt, `run_${index}`, `ses_${index + 1}`);
    accept(await fixture.server.next("POST /v1/sessions/ses_2/runs"), "run_2", "ses_2");
    expect(await after.accepted).toMatchObject({ runId: "run_2" });
  });

  test("waits for the end of each run and process, by its id", async () => {
    await using fixture = await connected();
    const cancelled = fixture.client.cancelAll({ waitMs: 3000 });
    const receipt = {
      kind: "stopping",
      runs: [
        { runId: "run_1", receipt: STOPPING },
        { runId: "run_2", receipt: { kind: "withdrawn" } },
      ],
      processes: [{ processId: "proc_1.1", receipt: STOPPING }],
    };
    (await fixture.server.next("POST /v1/cancel")).json(200, { sessions: [{ sessionId: "ses_1", receipt }] });
    (await fixture.server.next("POST /v1/runs/run_1/cancel")).json(200, SETTLED);
    const late = await fixture.server.next("POST /v1/processes/proc_1.1/cancel");
    expect(late.body).toEqual({ waitMs: 3000 });
    await fixture.clock.advance(3000);
    late.json(200, { ...STOPPING, first: false, ended: { kind: "limit", waitMs: 3000 } });
    expect(await cancelled).toEqual([
      {
        sessionId: "ses_1",
        receipt: {
          kind: "stopping",
          runs: [
            { runId: "run_1", receipt: { ...STOPPING, ended: SETTLED } },
            { runId: "run_2", receipt: { kind: "withdrawn" } },
          ],
          processes: [{ processId: "proc_1.1", receipt: { ...STOPPING, ended: { kind: "limit", waitMs: 3000 } } }],
        },
      },
    ]);
  });
});

describe("each method is one request", () => {
  test("for changes of the queue", async () => {
    await using fixture = await connected();
    const { queue } = fixture.client.session("ses_1");
    const base = "/v1/sessions/ses_1/queue/run_1";
    const cases = [
      [queue.edit("run_1", "new", { key: "k" }), `PATCH ${base}`, { prompt: { text: "new" } }],
      [queue.move("run_1", { before: "run_2" }), `PATCH ${base}`, { move: { before: "run_2" } }],
      [queue.steer("run_1"), `PATCH ${base}`, { steer: true }],
      [queue.withdraw("run_1", { reason: "no" }), `DELETE ${base}`, { reason: "no" }],
    ] as const;
    for (const [answer, line, body] of cases) {
      const asked = await fixture.server.next(line);
      expect(asked.body).toEqual(body);
      expect(asked.header("idempotency-key")).toMatch(/^k$|^key-/);
      asked.json(200, { kind: "changed", seq: 7 });
      expect(await answer).toEqual({ kind: "changed", seq: 7 });
    }
    const bare = queue.withdraw("run_1");
    const asked = await fixture.server.next(`DELETE ${base}`);
    expect([asked.body, asked.header("content-type")]).toEqual([undefined, undefined]);
    asked.json(200, { kind: "started" });
    expect(await bare).toEqual({ kind: "started" });
  });

  test("for a change of the mode", async () => {
    await using fixture = await connected();
    const answer = fixture.client.session("ses_1").setMode("auto", { by: "me", key: "k" });
    const asked = await fixture.server.next("PUT /v1/sessions/ses_1/mode");
    expect([asked.body, asked.header("idempotency-key")]).toEqual([{ mode: "auto", by: "me" }, "k"]);
    asked.json(200, { kind: "changed", mode: "auto", seq: 7 });
    expect(await answer).toEqual({ kind: "changed", mode: "auto", seq: 7 });
  });

  test("for answers to questions", async () => {
    await using fixture = await connected();
    const { questions } = fixture.client;
    const cases = [
      [
        questions.allow("ask_1.1", { remember: "session", digest: "d" }),
        { kind: "allowed", remember: "session", digest: "d" },
      ],
      [questions.deny("ask_1.1", { note: "no", by: "me" }), { kind: "denied", note: "no", by: "me" }],
      [questions.answer("ask_1.1", { a: 1 }), { kind: "answered", value: { a: 1 } }],
    ] as const;
    for (const [answer, body] of cases) {
      const asked = await fixture.server.next("POST /v1/questions/ask_1.1/answer");
      expect(asked.body).toEqual(body);
      asked.json(200, { kind: "recorded", questionId: "ask_1.1" });
      expect(await answer).toMatchObject({ kind: "recorded" });
    }
    await expect(questions.allow("run_1")).rejects.toMatchObject({ code: "invalid" });
  });

  test("for creating a session, with a key, or with an id and no key", async () => {
    await using fixture = await connected();
    const keyed = fixture.client.createSession({ title: "T" });
    const first = await fixture.server.next("POST /v1/sessions");
    expect([first.body, first.header("idempotency-key")]).toEqual([{ title: "T" }, "key-1"]);
    first.json(201, { id: "ses_9" });
    expect((await keyed).id).toBe("ses_9");
    const named = fixture.client.createSession({ id: "ses_mine" });
    const second = await fixture.server.next("POST /v1/sessions");
    expect([second.body, second.header("idempotency-key")]).toEqual([{ id: "ses_mine" }, undefined]);
    await second.cut();
    await fixture.passPause();
    (await fixture.server.next("POST /v1/sessions")).json(200, { id: "ses_mine" });
    expect((await named).id).toBe("ses_mine");
  });

  test("for finding a run, whose handle has its place in the queue", async () => {
    await using fixture = await connected();
    const found = fixture.client.run("run_2");
    const row = { id: "run_2", session: "ses_1", phase: "waiting", acceptedAt: 5 };
    (await fixture.server.next("GET /v1/runs/run_2")).json(200, row);
    const queue = [
      { runId: "run_1", text: "" },
      { runId: "run_2", text: "" },
    ];
    (await fixture.server.next("GET /v1/sessions/ses_1/explain")).json(200, {
      queue,
      steers: [],
      live: { runId: "run_0" },
    });
    const run = await found;
    expect(run.id).toBe("run_2");
    expect(await run.accepted).toEqual({
      ...{ kind: "accepted", runId: "run_2", seq: 5, joined: "queue", ahead: 2, repeated: true },
    });
  });

  test("for finding the session of an id that contains it", async () => {
    await using fixture = await connected();
    const call = fixture.client.findSession("call_1.3");
    (await fixture.server.next("GET /v1/runs/run_1")).json(200, { id: "run_1", session: "ses_1" });
    expect(await call).toBe("ses_1");
    const none = fixture.client.findSession("proc_1.1");
    (await fixture.server.next("GET /v1/processes/proc_1.1")).error(404, "not_found");
    expect(await none).toBeUndefined();
  });

  test.each([".", "..", ""])(
    "G10: a cancel of a call named %j is refused, because its path would name the session",
    async (id) => {
      await using fixture = await connected();
      const session = fixture.client.session("ses_1");
      await expect(session.cancelCall(id)).rejects.toMatchObject({ code: "invalid" });
      await expect(session.call(id)).rejects.toMatchObject({ code: "invalid" });
      expect(fixture.server.heard).toEqual([]);
    },
  );

  test("invalid cancels, and tenants, are refused without a request", async () => {
    await using fixture = await connected();
    const { client } = fixture;
    await expect(client.cancel("nobody")).rejects.toMatchObject({ code: "invalid" });
    await expect(client.cancel("run_1", { remind: true })).rejects.toMatchObject({ code: "invalid" });
    await expect(client.cancel("ask_1.1", { waitMs: 1 })).rejects.toMatchObject({ code: "invalid" });
    await expect(client.cancel("run_1", { waitMs: -1 })).rejects.toMatchObject({ code: "invalid" });
    await expect(client.live({ tenant: "acme" })).rejects.toMatchObject({ code: "invalid" });
    expect(() => client.session("../../etc")).toThrow(/ses_/);
    expect(fixture.server.heard).toEqual([]);
  });
});
