// Every route as a client calls it, over a real socket, on both stores. Each response is validated with its schema.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import type { Route } from "../../src/http/routes/route.ts";
import { ROUTE_NAMES, type RouteName, routeOf } from "../../src/http/routes/routes.ts";
import { problem } from "../../src/http/schemas/problem.ts";
import { untilAborted, waits } from "../fixtures/belay.ts";
import { type Answer, openTestServer, type TestRequest, type TestServer } from "../fixtures/server.ts";

const visited = new Set<RouteName>();
const opened: TestServer[] = [];
const folders: string[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((server) => server.close()));
  await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true, force: true })));
});

async function storePlace(kind: string): Promise<string> {
  if (kind === "memory") return ":memory:";
  const folder = await mkdtemp(join(tmpdir(), "belay-routes-"));
  folders.push(folder);
  return join(folder, "belay.db");
}

const ASK = { id: "ask", name: "Ask", description: "People are asked." } as const;

/** Resolves when the tool has begun. */
let digging = Promise.withResolvers<void>();

const ACTS = {
  wait: waits,
  tool: (turn) =>
    turn
      .call("dig", { deep: true }, (call) => {
        digging.resolve();
        return untilAborted(call.signal);
      })
      .then(({ kind }) => kind),
  approve: (turn) => turn.call("pay", { sum: 3 }, () => "paid", { approval: true }).then(({ kind }) => kind),
  ask: (turn) => turn.ask({ text: "Which way?", options: ["left"] }).then((asked) => JSON.stringify(asked)),
} satisfies Parameters<typeof openTestServer>[0];

async function open(kind: string): Promise<TestServer> {
  const server = await openTestServer(ACTS, { store: await storePlace(kind), processes: { profile: "none" } });
  opened.push(server);
  return server;
}

const patternOf = (route: Route): RegExp => new RegExp(`^${route.path.replaceAll(/\{\w+\}/g, "[^/]+")}$`);

/** Sends a request, and fails unless the response matches the table exactly. */
async function ask(server: TestServer, method: string, target: string, options?: TestRequest): Promise<Answer> {
  const answer = await server.ask(method, target, options);
  const path = target.split("?")[0] ?? "";
  const name = ROUTE_NAMES.find((one) => routeOf(one).method === method && patternOf(routeOf(one)).test(path));
  expect(answer.headers["x-request-id"]).toBeTypeOf("string");
  if (answer.status >= 400 && answer.status !== 503) {
    expect(problem.parse(answer.body)).toEqual(answer.body);
    return answer;
  }
  expect(name).toBeDefined();
  if (name === undefined) return answer;
  visited.add(name);
  const declared = routeOf(name).answers[answer.status];
  expect(declared, `${name} answers ${answer.status}`).toBeDefined();
  if (declared?.kind === "json") expect(declared.schema.parse(answer.body)).toEqual(answer.body);
  return answer;
}

/** A text field of a response. */
const field = (answer: Answer, name: string): string => {
  const value: unknown = (answer.body as Record<string, unknown>)[name];
  if (typeof value !== "string") throw new Error(`${name} of ${answer.text} is not a text`);
  return value;
};

async function begun(server: TestServer, text: string): Promise<{ session: string; run: string }> {
  const made = await ask(server, "POST", "/v1/sessions", { body: { title: text } });
  const session = field(made, "id");
  const accepted = await ask(server, "POST", `/v1/sessions/${session}/runs`, { body: { prompt: text } });
  await server.began(text);
  return { session, run: field(accepted, "runId") };
}

describe.each(["memory", "sqlite"])("on %s:", (kind) => {
  test("the state of the server is returned", async () => {
    const server = await open(kind);
    expect((await ask(server, "GET", "/v1/ids?prefix=ses_")).body).toMatchObject({ complete: true });
    expect((await ask(server, "GET", "/healthz")).body).toEqual({ status: "ok" });
    expect((await ask(server, "GET", "/readyz")).body).toEqual({ status: "ready" });
    expect(JSON.parse((await ask(server, "GET", "/openapi.json")).text)).toMatchObject({ openapi: "3.1.1" });
    expect((await ask(server, "GET", "/metrics")).headers["content-type"]).toContain("version=0.0.4");
    expect((await ask(server, "GET", "/v1/status")).body).toMatchObject({ phase: "open" });
    expect((await ask(server, "GET", "/v1/audit?limit=5")).body).toEqual({ records: [], next: null });
  });

  test("sessions are created once, listed in pages, and closed", async () => {
    const server = await open(kind);
    expect((await ask(server, "POST", "/v1/sessions", { body: { id: "ses_one" } })).status).toBe(201);
    expect((await ask(server, "POST", "/v1/sessions", { body: { id: "ses_one" } })).status).toBe(200);
    const keyed = await ask(server, "POST", "/v1/sessions", { key: "k", body: {} });
    const again = await ask(server, "POST", "/v1/sessions", { key: "k" });
    expect(field(again, "id")).toBe(field(keyed, "id"));
    const first = await ask(server, "GET", "/v1/sessions?limit=1");
    expect(first.body).toMatchObject({ sessions: [{ id: "ses_one" }], next: "ses_one" });
    expect((await ask(server, "GET", "/v1/sessions?after=ses_one")).body).toMatchObject({ next: null });
    expect((await ask(server, "GET", "/v1/sessions/ses_one")).body).toMatchObject({ phase: "open" });
    expect((await ask(server, "DELETE", "/v1/sessions/ses_one")).body).toEqual({ kind: "idle", runs: [] });
    expect((await ask(server, "GET", "/v1/sessions/ses_one")).body).toMatchObject({ phase: "closed" });
    const refused = await ask(server, "POST", "/v1/sessions/ses_one/runs", { body: { prompt: "x" } });
    expect(refused).toMatchObject({ status: 409, body: { error: { code: "closed" } } });
  });

  test("a prompt is accepted, and its outcome is in its log, transcript and row", async () => {
    const server = await open(kind);
    const accepted = await ask(server, "POST", "/v1/runs", { body: { prompt: "hello", title: "T" }, key: "once" });
    expect(accepted.status).toBe(202);
    const [run, session] = [field(accepted, "runId"), field(accepted, "sessionId")];
    const again = await ask(server, "POST", "/v1/runs", { body: { prompt: "hello", title: "T" }, key: "once" });
    expect(again.body).toMatchObject({ runId: run, repeated: true });
    const outcome = await ask(server, "GET", `/v1/runs/${run}/outcome?waitMs=600000`);
    expect(outcome.body).toEqual({ runId: run, outcome: { kind: "completed" } });
    const outcomes = await ask(server, "GET", `/v1/outcomes?runs=${run},run_none&waitMs=600000`);
    expect(outcomes.body).toMatchObject({
      outcomes: [{ runId: run, outcome: { kind: "completed" } }],
      failed: [{ runId: "run_none", error: { code: "not_found" } }],
    });
    const view = await ask(server, "GET", `/v1/runs/${run}`);
    expect(view.body).toMatchObject({ phase: "settled", key: "once", prompt: { text: "hello" }, turns: 1, calls: [] });
    expect((await ask(server, "GET", `/v1/sessions/${session}/prompts/once`)).body).toEqual(view.body);
    for (const none of ["calls/call_none.1", "calls/toolu_1", "prompts/other"]) {
      expect((await ask(server, "GET", `/v1/sessions/${session}/${none}`)).status).toBe(404);
    }
    expect((await ask(server, "GET", "/v1/calls/call_none.1")).status).toBe(404);
    const unknown = await ask(server, "POST", `/v1/sessions/${session}/calls/toolu_1/cancel`);
    expect(unknown.body).toEqual({ kind: "unknown" });
    expect((await ask(server, "GET", `/v1/sessions/${session}/runs?limit=1`)).body).toMatchObject({
      runs: [{ id: run }],
    });
    expect((await ask(server, "GET", `/v1/sessions/${session}/transcript`)).text).toContain("hello");
    const stream = await ask(server, "GET", `/v1/runs/${run}/events`);
    expect(stream.text).toMatch(
      /^retry: 1000\n\nid: 2\nevent: run\.accepted\ndata: \{.*\}\n\n[\s\S]*event: run\.settled\n/,
    );
    const settled = /id: (\d+)\nevent: run\.settled/.exec(stream.text)?.[1] ?? "";
    const over = await ask(server, "GET", `/v1/runs/${run}/events`, { headers: { "last-event-id": settled } });
    expect(over.status).toBe(204);
    expect((await ask(server, "POST", `/v1/sessions/${session}/trim`, { body: { before: 3 } })).body).toHaveProperty(
      "kept",
    );
  });

  test("the mode of a session is set, with its actor", async () => {
    const agent = Object.assign((): string => "done", { modes: [ASK, { id: "auto", name: "Auto" }] });
    const server = await openTestServer({}, { store: await storePlace(kind), agent });
    opened.push(server);
    const session = field(await ask(server, "POST", "/v1/sessions", { body: {} }), "id");
    const at = `/v1/sessions/${session}/mode`;
    const set = await ask(server, "PUT", at, { body: { mode: "auto" }, key: "k" });
    expect(set.body).toMatchObject({ kind: "changed", mode: "auto" });
    expect((await ask(server, "PUT", at, { body: { mode: "auto" }, key: "k" })).body).toEqual(set.body);
    expect((await ask(server, "PUT", at, { body: { mode: "auto" } })).body).toEqual({
      kind: "unchanged",
      mode: "auto",
    });
    expect((await ask(server, "PUT", at, { body: { mode: "plan" } })).status).toBe(400);
    expect((await ask(server, "PUT", at, { body: { mode: "auto", more: 1 } })).status).toBe(400);
    expect((await ask(server, "GET", `/v1/sessions/${session}/explain`)).body).toMatchObject({ mode: "auto" });
    expect((await ask(server, "GET", "/v1/status")).body).toMatchObject({ modes: [ASK, { id: "auto" }], mode: "ask" });
    expect(server.audit).toContainEqual(expect.objectContaining({ action: "set-mode", target: session, actor: "ann" }));
    for await (const event of server.belay.session(session).events()) {
      if (event.type !== "session.mode_set") continue;
      expect(event).toMatchObject({ mode: "auto", by: "ann" });
      break;
    }
  });

  test("a busy session is explained, its queue is changed, and it is cancelled as a whole", async () => {
    const server = await open(kind);
    const { session, run } = await begun(server, "wait");
    const queued = async (prompt: string): Promise<string> =>
      field(await ask(server, "POST", `/v1/sessions/${session}/runs`, { body: { prompt } }), "runId");
    const [one, two] = [await queued("one"), await queued("two")];
    const at = `/v1/sessions/${session}/queue`;
    expect((await ask(server, "PATCH", `${at}/${two}`, { body: { move: "front" } })).body).toMatchObject({
      kind: "changed",
    });
    expect((await ask(server, "PATCH", `${at}/${two}`, { body: { move: { before: one } } })).body).toMatchObject({
      kind: "unchanged",
    });
    await ask(server, "PATCH", `${at}/${two}`, { body: { prompt: { text: "edited" } } });
    expect((await ask(server, "GET", at)).body).toMatchObject({
      queue: [
        { runId: two, prompt: { text: "edited" } },
        { runId: one, prompt: { text: "one" } },
      ],
    });
    expect((await ask(server, "PATCH", `${at}/${one}`, { body: { steer: true } })).body).toMatchObject({
      kind: "changed",
    });
    expect((await ask(server, "DELETE", `${at}/${two}`)).body).toMatchObject({ kind: "changed" });
    expect((await ask(server, "DELETE", `${at}/${run}`)).body).toEqual({ kind: "started" });
    expect((await ask(server, "GET", `/v1/sessions/${session}/explain`)).body).toMatchObject({ busy: true });
    expect((await ask(server, "GET", "/v1/live")).body).toMatchObject({ sessions: [{ sessionId: session }] });
    expect(
      (await ask(server, "POST", `/v1/sessions/${session}/inbox`, { body: { kind: "result", text: "r" } })).status,
    ).toBe(202);
    // Even without `waitMs`, the waited time is measured.
    const unsettled = await ask(server, "GET", `/v1/runs/${run}/outcome`);
    expect(unsettled.body).toMatchObject({ phase: "live", waitedMs: expect.any(Number) });
    const body = { reason: "enough", waitMs: 60_000 };
    const receipt = await ask(server, "POST", `/v1/sessions/${session}/cancel`, { body });
    expect(receipt.body).toMatchObject({ kind: "stopping" });
    expect(receipt.text).toContain('"by":"ann"');
  });

  test("a run, a call, a prompt by its key and everything at once are cancelled", async () => {
    const server = await open(kind);
    digging = Promise.withResolvers<void>();
    const dig = await begun(server, "tool");
    const call = `call_${dig.run.slice(4)}.1`;
    await digging.promise;
    const view = await ask(server, "GET", `/v1/calls/${call}`);
    expect(view.body).toMatchObject({ id: call, phase: "running" });
    const { session: owner } = view.body as { readonly session: string };
    expect((await ask(server, "GET", `/v1/sessions/${owner}/calls/${call}`)).body).toEqual(view.body);
    const stopped = await ask(server, "POST", `/v1/calls/${call}/cancel`, { body: { remind: false, waitMs: 60_000 } });
    expect(stopped.body).toMatchObject({
      kind: "stopping",
      ended: { kind: "settled", outcome: { kind: "cancelled" } },
    });
    const { session, run } = await begun(server, "wait");
    const later = await ask(server, "POST", `/v1/sessions/${session}/runs`, { body: { prompt: "later" }, key: "a/b?" });
    const key = encodeURIComponent("a/b?");
    expect((await ask(server, "POST", `/v1/sessions/${session}/prompts/${key}/cancel`)).body).toEqual({
      kind: "withdrawn",
      runId: field(later, "runId"),
    });
    // Before the prompt for a new session has arrived.
    const early = { body: { early: true } };
    expect((await ask(server, "POST", "/v1/prompts/k9/cancel", early)).body).toEqual({ kind: "withdrawn" });
    expect((await ask(server, "POST", "/v1/prompts/k10/cancel")).body).toEqual({ kind: "unknown" });
    expect((await ask(server, "POST", `/v1/runs/${run}/cancel`, { body: { waitMs: 60_000 } })).body).toMatchObject({
      ended: { kind: "settled" },
    });
    expect((await ask(server, "POST", "/v1/runs/run_none/cancel")).body).toEqual({ kind: "unknown" });
    await begun(server, "wait");
    expect((await ask(server, "POST", "/v1/cancel", { body: { waitMs: 60_000 } })).body).toMatchObject({
      sessions: [{ receipt: { kind: "stopping" } }],
    });
  });

  test("questions are listed, answered once, and withdrawn", async () => {
    const server = await open(kind);
    const { session, run } = await begun(server, "approve");
    const listed = async (target: string): Promise<string> => {
      const { body } = await ask(server, "GET", target);
      return (body as { questions: readonly { id: string }[] }).questions[0]?.id ?? "";
    };
    await questionIn(server, session);
    const id = await listed(`/v1/sessions/${session}/questions`);
    expect(await listed("/v1/questions")).toBe(id);
    const wrong = await ask(server, "POST", `/v1/questions/${id}/answer`, {
      body: { kind: "allowed", digest: "other" },
    });
    expect(wrong).toMatchObject({ status: 409, body: { error: { code: "conflict" } } });
    expect((await ask(server, "POST", `/v1/questions/${id}/answer`, { body: { kind: "allowed" } })).body).toEqual({
      kind: "recorded",
      questionId: id,
    });
    const late = await ask(server, "POST", `/v1/questions/${id}/answer`, { body: { kind: "denied" } });
    expect(late.body).toEqual({ kind: "settled", ending: { kind: "allowed", by: "ann" } });
    await ask(server, "GET", `/v1/runs/${run}/outcome?waitMs=600000`);
    const way = await begun(server, "ask");
    await questionIn(server, way.session);
    const other = await listed(`/v1/sessions/${way.session}/questions`);
    expect((await ask(server, "POST", `/v1/questions/${other}/cancel`)).body).toMatchObject({ kind: "withdrawn" });
  });

  test("processes are listed, written to, read, followed and stopped", async () => {
    const server = await open(kind);
    const made = await ask(server, "POST", "/v1/sessions");
    const session = field(made, "id");
    const { processes } = server.belay.session(session);
    const { id } = await processes.start(["cat"], { stdin: "open", profile: "none" });
    const at = `/v1/processes/${id}`;
    expect((await ask(server, "GET", at)).body).toMatchObject({ id, sessionId: session, info: { id }, row: { id } });
    expect((await ask(server, "GET", `/v1/sessions/${session}/processes`)).body).toMatchObject({ processes: [{ id }] });
    expect((await ask(server, "POST", `${at}/input`, { body: { data: "grüße\n" } })).body).toEqual({ written: 8 });
    expect((await ask(server, "GET", `${at}/result`)).body).toEqual({ processId: id, waitedMs: 0 });
    const resized = await ask(server, "POST", `${at}/resize`, { body: { columns: 80, rows: 24 } });
    expect(resized).toMatchObject({ status: 400, body: { error: { code: "invalid" } } });
    expect((await ask(server, "POST", `${at}/input`, { body: { base64: "aGk=", end: true } })).body).toEqual({
      written: 2,
    });
    const followed = await ask(server, "GET", `${at}/output/follow`);
    expect(followed.text).toContain("event: page\ndata: ");
    const result = await ask(server, "GET", `${at}/result?waitMs=600000`);
    expect(result.body).toMatchObject({ exit: { code: 0 }, output: { tail: expect.any(String) } });
    expect(result.text).not.toContain('"dir"');
    expect((await ask(server, "GET", `${at}/output?stream=stdout&plain=true`)).body).toMatchObject({
      text: "grüße\nhi",
      to: 10,
    });
    const over = await ask(server, "GET", `${at}/output/follow`, { headers: { "last-event-id": "10" } });
    expect(over.status).toBe(204);
    expect((await ask(server, "POST", `${at}/cancel`)).body).toMatchObject({ kind: "settled" });
    const history = await ask(server, "GET", `/v1/sessions/${session}/processes/history?limit=1`);
    expect(history.body).toMatchObject({ processes: [{ id }] });
    const shell = await processes.start("echo up; while :; do sleep 0.01; done", {
      terminal: { columns: 9, rows: 9 },
      profile: "none",
    });
    // Before its first output, its terminal may not exist yet.
    for await (const page of shell.follow()) if (page.text.includes("up")) break;
    const size = { columns: 80, rows: 24 };
    expect((await ask(server, "POST", `/v1/processes/${shell.id}/resize`, { body: size })).body).toEqual({});
  });
});

test("a session is deleted with everything in it", async () => {
  const server = await open("sqlite");
  const { session, run } = await begun(server, "wait");
  const deleted = await ask(server, "POST", `/v1/sessions/${session}/delete`);
  expect(deleted.body).toMatchObject({ kind: "deleted", sessionId: session });
  expect((await ask(server, "GET", `/v1/sessions/${session}`)).status).toBe(404);
  expect((await ask(server, "GET", `/v1/runs/${run}`)).status).toBe(404);
});

/** Resolves once the session has a question. */
async function questionIn(server: TestServer, session: string): Promise<void> {
  for await (const event of server.belay.session(session).events()) if (event.type === "question.asked") return;
}

afterAll(() => {
  // Endless streams have separate tests.
  const unvisited = ROUTE_NAMES.filter((name) => !visited.has(name));
  expect(unvisited).toEqual(["allEvents", "stream", "sendToStream", "sessionEvents"]);
});
