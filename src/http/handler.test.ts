import { afterEach, describe, expect, test } from "vitest";
import { openTestBelay, untilAborted } from "../../test/fixtures/belay.ts";
import { plainRequest } from "../../test/fixtures/plain-request.ts";
import { recordingControl } from "../../test/fixtures/recording-control.ts";
import { ADVICE, type ControlCode, ControlError, STOP_UNRECORDED } from "../core/errors.ts";
import { WAIT_MS_MAX } from "../core/limits.ts";
import type { BelayControl } from "../ports/control.ts";
import { Gate } from "../testing/gate.ts";
import { manualClock, settled } from "../testing/manual-clock.ts";
import { Guard } from "./auth/guard.ts";
import { makeHandler } from "./handler.ts";
import { ANONYMOUS_NOTED_MAX, ANONYMOUS_WINDOW_MS, OUTCOMES_TOGETHER_MAX } from "./limits.ts";
import type { AuditNote, ServerAudit, ServerMetrics } from "./observer.ts";
import { isMutation, paramsOf } from "./routes/route.ts";
import { ROUTE_NAMES, routeOf } from "./routes/routes.ts";
import { STATUS } from "./routes/status-code.ts";
import { CONTROL_CODES, problem } from "./schemas/problem.ts";
import { type Actor, type HttpAnswer, TOKEN_SCOPES } from "./transport/http-exchange.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

const actor = (name: string, tenant?: string): Actor => ({ name, scopes: new Set(TOKEN_SCOPES), tenant });
const ACTORS: Readonly<Record<string, Actor>> = { ann: actor("ann"), acme: actor("acme", "acme") };

function serve(control: BelayControl, note?: ServerAudit["note"], metrics?: ServerMetrics) {
  const clock = manualClock();
  const lines: { readonly level: string; readonly msg: string; readonly fields: unknown }[] = [];
  const notes: AuditNote[] = [];
  const keep = async (record: AuditNote): Promise<void> => void notes.push(record);
  const logger = (level: string) => (msg: string, fields?: unknown) => void lines.push({ level, msg, fields });
  const guard = new Guard({ tokens: { verify: (secret) => ACTORS[secret] }, clock, mutationsBurst: 1e6 });
  guard.serves({ scheme: "http", port: 1 });
  const handler = makeHandler({
    control,
    guard,
    clock,
    version: "0",
    ...(metrics === undefined ? {} : { metrics }),
    audit: { note: note ?? keep, read: async () => ({ records: [] }) },
    log: { debug: logger("debug"), warn: logger("warn"), error: logger("error") },
  });
  const ask = (method: string, target: string, body = "", headers: Record<string, string> = {}): Promise<HttpAnswer> =>
    handler.handle(
      plainRequest({
        method,
        target,
        body,
        headers: { host: "127.0.0.1:1", authorization: "Bearer ann", "content-type": "application/json", ...headers },
      }),
    );
  return { handler, ask, clock, lines, notes };
}

async function served(acts: Parameters<typeof openTestBelay>[0] = {}, metrics?: ServerMetrics) {
  const fixture = await openTestBelay(acts);
  closing.push(() => fixture.belay.close({ mode: "cancel" }));
  return { ...fixture, ...serve(fixture.belay, undefined, metrics) };
}

const byRun = (one: { runId: string }, other: { runId: string }): number => one.runId.localeCompare(other.runId);

const errorOf = ({ body }: HttpAnswer) => problem.parse(JSON.parse(String(body))).error;

/** A control whose `live()` rejects with this error. */
function failing(error: unknown): BelayControl {
  const { control } = recordingControl(undefined);
  return new Proxy(control, {
    get: (target, name) => (name === "live" ? () => Promise.reject(error) : Reflect.get(target, name)),
  });
}

describe("an error", () => {
  test.each(CONTROL_CODES)(
    "with the code %s has its status, its hint and `retryable`",
    { meta: { id: "http/error-codes-have-status" } },
    async (code: ControlCode) => {
      const { ask } = serve(failing(new ControlError(code, "It is so.")));
      const answer = await ask("GET", "/v1/live");
      expect(answer.status).toBe(STATUS[code]);
      expect(errorOf(answer)).toMatchObject({ code, requestId: answer.headers["x-request-id"] });
      expect(errorOf(answer).message === "It is so.").toBe(!/^(store_|unavailable|internal)/.test(code));
      const later = answer.status === 429 || answer.status === 503;
      expect(answer.headers["retry-after"]).toBe(later ? "1" : undefined);
    },
  );

  test.each(["store_full", "store_locked", "store_corrupt", "store_newer", "unavailable", "internal"] as const)(
    "G35: %s names no file of the server, and the log has all of it",
    async (code) => {
      const error = new ControlError(code, "There is no space left for /srv/belay.db.");
      const { ask, lines } = serve(failing(error));
      expect(String((await ask("GET", "/v1/live")).body)).not.toContain("/srv");
      const [line] = lines.filter(({ level }) => level !== "debug");
      if (code === "internal") expect(line).toMatchObject({ level: "error", fields: { error } });
      else expect(line).toMatchObject({ level: "warn", msg: error.message });
    },
  );

  test("G28: of a stop that cannot be recorded tells that it was carried out, and names no file", async () => {
    const message = "The stop was carried out here, but could not be recorded yet: /srv/belay.db cannot be used.";
    for (const hint of [STOP_UNRECORDED, "Look into /srv/belay.db."]) {
      const { ask } = serve(failing(new ControlError("unavailable", message, { hint })));
      const answer = await ask("GET", "/v1/live");
      const isStop = hint === STOP_UNRECORDED;
      expect(errorOf(answer).hint).toBe(isStop ? hint : ADVICE.unavailable.hint);
      expect(errorOf(answer).message).toBe(
        `${isStop ? "The stop is not recorded yet. " : ""}The server cannot do this at the moment.`,
      );
      expect(String(answer.body)).not.toContain("/srv");
    }
  });

  test("that is internal is logged and not sent to the client", async () => {
    const { ask, lines } = serve(failing(new Error("password of the database: hunter2")));
    const answer = await ask("GET", "/v1/live");
    expect(answer.status).toBe(500);
    expect(errorOf(answer)).toMatchObject({ code: "internal", message: "Something went wrong inside Belay." });
    expect(String(answer.body)).not.toContain("hunter2");
    expect(lines.filter(({ level }) => level === "error")).toHaveLength(1);
  });

  test.each([
    ["GET", "/", 404, "not_found"],
    ["GET", "/v1/sessions/", 404, "not_found"],
    ["GET", "/v1/sessions//runs", 404, "not_found"],
    ["GET", "/v1/sessions/ses_a%2F..%2Fx", 404, "not_found"],
    ["GET", "/v1/sessions/%ff", 404, "not_found"],
    ["GET", "/v1/sessions/run_a", 404, "not_found"],
    ["POST", "/v1/runs/ses_a/cancel", 404, "not_found"],
    ["PUT", "/v1/sessions", 405, "invalid"],
    ["DELETE", "/v1/status", 405, "invalid"],
    ["GET", "/v1/sessions?limit=0", 400, "invalid"],
    ["GET", "/v1/sessions?limit=1e2", 400, "invalid"],
    ["GET", "/v1/sessions?limit=1&limit=2", 400, "invalid"],
  ] as const)("%s %s is %i %s", async (method, target, status, code) => {
    const { control, calls } = recordingControl(undefined);
    const answer = await serve(control).ask(method, target);
    expect(answer.status).toBe(status);
    expect(errorOf(answer).code).toBe(code);
    expect(calls).toEqual([]);
  });

  test.each([
    ["/v1/runs", '{"promt":"x"}', /no `promt`\. Did you mean `prompt`\?/],
    ["/v1/runs", '{"prompt":"x","titel":"y"}', /no `titel`\. Did you mean `title`\?/],
    ["/v1/runs", '{"prompt":7}', /`prompt`: a prompt must be a text/],
    ["/v1/runs", '{"prompt":{"text":"a","extra":1}}', /`prompt`/],
    ["/v1/runs", "{", /not JSON/],
    ["/v1/runs", "[]", /The body/],
    ["/v1/runs", `{"prompt":{"text":"a","data":${"[".repeat(100)}${"]".repeat(100)}}}`, /deeper than 64/],
    ["/v1/cancel", '{"background":"all"}', /`background`/],
    ["/v1/cancel", '{"backgroud":"keep"}', /no `backgroud`\. Did you mean `background`\?/],
    ["/v1/sessions/ses_a/cancel", '{"prompts":"k"}', /`prompts`/],
    ["/v1/sessions/ses_a/prompts/k/cancel", '{"early":1}', /`early`/],
    ["/v1/sessions/ses_a/cancel", "[]", /The body/],
    ["/v1/sessions/ses_a/delete", '{"reason":"x","comment":"y"}', /no `comment`/],
  ])("in a body for %s (%s) is reported with its field", async (target, body, message) => {
    const { control, calls } = recordingControl(undefined);
    const answer = await serve(control).ask("POST", target, body);
    expect(answer.status).toBe(400);
    expect(errorOf(answer).message).toMatch(message);
    expect(calls).toEqual([]);
  });

  test.each([
    ['{"waitMs":3600000}', { waitMs: WAIT_MS_MAX, reason: { kind: "user" } }],
    ['{"waitMs":"soon"}', { reason: { kind: "user" } }],
    ['{"reason":null,"background":null}', { reason: { kind: "user" } }],
    ['{"reason":7}', { reason: { kind: "user", note: "[unreadable reason]" } }],
    ['{"reason":{"note":"why"}}', { reason: { kind: "user", note: "why" } }],
    ['{"reason":"x","comment":"y"}', { reason: { kind: "user", note: "x" } }],
    ["null", { reason: { kind: "user" } }],
  ])("G7: a stop with %s is carried out", async (body, options) => {
    const { control, calls } = recordingControl("ses_a");
    await serve(control).ask("POST", "/v1/sessions/ses_a/cancel", body);
    expect(calls.find(({ what }) => what === "session.cancel")?.given).toMatchObject([options]);
  });

  test("in the name of a query parameter is reported with a suggestion", async () => {
    const { ask } = serve(recordingControl(undefined).control);
    expect(errorOf(await ask("GET", "/v1/sessions?limt=3")).message).toBe(
      "The query has no `limt`. Did you mean `limit`?",
    );
  });

  test.each(["", "grüße", "k".repeat(257), "a\nb"])("the key %j is refused", async (key) => {
    const { control, calls } = recordingControl(undefined);
    const answer = await serve(control).ask("POST", "/v1/runs", '{"prompt":"x"}', { "idempotency-key": key });
    expect(errorOf(answer)).toMatchObject({ code: "invalid" });
    expect(calls).toEqual([]);
  });

  test("requests without a valid token share one label of the metrics", async () => {
    const counted: string[] = [];
    const metrics = { answered: (route: string) => counted.push(route), streams() {}, acp() {}, text: () => "" };
    const guard = new Guard({ tokens: { verify: () => undefined }, clock: manualClock() });
    guard.serves({ scheme: "http", port: 4000 });
    const handler = makeHandler({
      ...{ control: recordingControl(undefined).control, guard, clock: manualClock(), version: "0", metrics },
    });
    for (const host of ["127.0.0.1:4000", "evil.example"]) {
      await handler.handle(plainRequest({ target: "/v1/sessions", headers: { host } }));
    }
    await handler.handle(plainRequest({ target: "/v1/health", headers: { host: "127.0.0.1:4000" } }));
    expect(counted.slice(0, 2)).toEqual(["none", "none"]);
  });

  test("G40: readiness reports a shortage of open files until it is over", async () => {
    let isShort = true;
    const metrics = { isShortOfFiles: () => isShort, answered() {}, streams() {}, acp() {}, text: () => "" };
    const { ask } = await served({}, metrics);
    expect(await ask("GET", "/readyz")).toMatchObject({ status: 503, body: '{"status":"files"}' });
    isShort = false;
    expect(await ask("GET", "/readyz")).toMatchObject({ status: 200, body: '{"status":"ready"}' });
  });

  test("G35: the key of a new session belongs to its actor", async () => {
    const { control, calls } = recordingControl(undefined);
    await serve(control).ask("POST", "/v1/runs", '{"prompt":"x"}', { "idempotency-key": "1" });
    expect(calls[0]?.given).toMatchObject([expect.anything(), { key: "1", keyOf: expect.any(String) }]);
  });

  test("a route that is not idempotent refuses a key", async () => {
    const { ask } = serve(recordingControl(undefined).control);
    const answer = await ask("POST", "/v1/processes/proc_a.1/input", '{"data":"y"}', { "idempotency-key": "k" });
    expect(errorOf(answer)).toMatchObject({ code: "invalid" });
  });
});

describe("G35: an object of another tenant is reported as not found", () => {
  test("on every route with an id; a stop of an unknown object has the receipt `unknown`", {
    meta: { id: "G35/foreign-tenant-ids-unknown" },
  }, async () => {
    const { ask, belay } = await served({ wait: () => new Promise(() => {}) });
    const theirs = await belay.createSession({ id: "ses_other.a" });
    const { runId } = await theirs.prompt("wait").accepted;
    const stem = runId.slice(4);
    const foreign = {
      session: "ses_other.a",
      run: runId,
      call: `call_${stem}.1`,
      process: "proc_other.a.1",
      question: `ask_${stem}.1`,
    };
    const absent = {
      session: "ses_acme.x",
      run: "run_x",
      call: "call_x.1",
      process: "proc_acme.x.1",
      question: "ask_x.1",
    };
    const bodies: Readonly<Record<string, string>> = {
      promptSession: '{"prompt":"x"}',
      changeQueue: '{"move":"front"}',
      post: '{"kind":"result","text":"x"}',
      setMode: '{"mode":"auto"}',
      trim: '{"before":1}',
      answerQuestion: '{"kind":"allowed"}',
      processInput: '{"data":"x"}',
      resizeProcess: '{"columns":1,"rows":1}',
    };
    for (const name of ROUTE_NAMES) {
      const { method, path } = routeOf(name);
      const [kind] = paramsOf(path);
      if (kind === undefined || kind === "key") continue;
      const replyFor = async (ids: Readonly<Record<string, string>>): Promise<string> => {
        const target = path.replaceAll(/\{(\w+)\}/g, (_, one: string) => ids[one] ?? "k");
        const { status, body } = await ask(method, target, bodies[name] ?? "", { authorization: "Bearer acme" });
        const neutral = String(body).replace(/"requestId":"\w+"/, "");
        return `${status} ${Object.values(ids).reduce((text, id) => text.replaceAll(id, "ID"), neutral)}`;
      };
      const unknown = await replyFor(absent);
      const another = await replyFor(foreign);
      expect(another, name).toMatch(/^404 .*"not_found"/);
      if (unknown.startsWith("200")) expect(unknown, name).toContain('"kind":"unknown"');
      else expect(unknown, name).toBe(another);
    }
    expect((await theirs.explain()).live?.phase).toBe("running");
  });

  test("in a request for the outcomes of several runs", async () => {
    const { ask, belay } = await served({ done: () => "done" });
    const [own, other] = ["ses_acme.a", "ses_other.a"].map((id) => belay.session(id));
    for (const session of [own, other]) await belay.createSession({ id: session?.id ?? "" });
    const runs = [own, other].map((session) => session?.prompt("done"));
    for (const run of runs) await run?.outcome;
    const target = `/v1/outcomes?runs=${runs.map((run) => run?.id).join()},run_x,x`;
    const { status, body } = await ask("GET", target, "", { authorization: "Bearer acme" });
    const { outcomes, failed } = JSON.parse(String(body));
    expect([status, outcomes]).toEqual([200, [{ runId: runs[0]?.id, outcome: { kind: "completed" } }]]);
    const absent = (runId = "") => ({ runId, error: { code: "not_found", message: `There is no run ${runId}.` } });
    const others = [absent(runs[1]?.id), absent("run_x"), absent("x")];
    expect(failed.toSorted(byRun)).toMatchObject(others.toSorted(byRun));
  });

  test("and a tenant can create sessions only with its own prefix", async () => {
    const { ask, belay } = await served();
    const headers = { authorization: "Bearer acme" };
    expect(errorOf(await ask("POST", "/v1/sessions", '{"id":"ses_other.a"}', headers)).message).toContain("ses_acme.");
    expect((await ask("POST", "/v1/sessions", '{"id":"ses_acme.a"}', headers)).status).toBe(201);
    expect((await belay.sessions()).map(({ id }) => id)).toEqual(["ses_acme.a"]);
  });
});

describe("order", () => {
  test("G4: prompts are accepted in the order in which their bodies were read, whatever the store does", async () => {
    const gate = new Gate();
    const { ask, belay } = await served({ p0: () => gate.opened.then(() => "done") });
    const { id } = await belay.createSession();
    const sent = Array.from({ length: 50 }, (_, index) =>
      ask("POST", `/v1/sessions/${id}/runs`, `{"prompt":"p${index}"}`),
    );
    const seqs = (await Promise.all(sent)).map(({ body }) => JSON.parse(String(body)).seq);
    expect(seqs).toEqual(seqs.toSorted((one, other) => one - other));
    gate.open();
  });
});

describe("the audit trail", () => {
  test("does not prevent a stop if it cannot be written, and the failure is logged", async () => {
    const fixture = await openTestBelay();
    closing.push(() => fixture.belay.close());
    const { ask, lines } = serve(fixture.belay, () => Promise.reject(new Error("disk full")));
    expect((await ask("POST", "/v1/cancel")).status).toBe(200);
    expect(lines.some(({ level }) => level === "error")).toBe(true);
  });

  test("is written before the request is answered", async () => {
    const fixture = await openTestBelay();
    closing.push(() => fixture.belay.close());
    const written = new Gate();
    const begun = new Gate();
    const { ask } = serve(fixture.belay, () => {
      begun.open();
      return written.opened;
    });
    let answered = false;
    const answer = ask("POST", "/v1/cancel").then(() => {
      answered = true;
    });
    await begun.opened;
    await settled();
    expect(answered).toBe(false);
    written.open();
    await answer;
  });

  test("has a limited number of denials without a valid token per minute, and all other requests", async () => {
    const { ask, notes, clock } = serve(recordingControl(undefined).control);
    const anonymous = { authorization: "Bearer guess" };
    for (let count = 0; count < 10 * ANONYMOUS_NOTED_MAX; count += 1) await ask("POST", "/v1/cancel", "", anonymous);
    expect(notes).toHaveLength(ANONYMOUS_NOTED_MAX);
    await ask("POST", "/v1/cancel");
    expect(notes.at(-1)).toMatchObject({ actor: "ann" });
    clock.tick(ANONYMOUS_WINDOW_MS);
    await ask("POST", "/v1/cancel", "", anonymous);
    expect(notes).toHaveLength(ANONYMOUS_NOTED_MAX + 2);
  });
});

describe("waiting", () => {
  test("for an outcome ends at the timeout with the waited time", async () => {
    const { ask, belay, clock, began } = await served({ wait: () => new Promise(() => {}) });
    const { id } = belay.prompt("wait");
    await began("wait");
    const answer = ask("GET", `/v1/runs/${id}/outcome?waitMs=7000`);
    await clock.advance(6_999);
    expect(clock.pending).toHaveLength(1);
    await clock.advance(1);
    expect(JSON.parse(String((await answer).body))).toEqual({ runId: id, phase: "live", waitedMs: 7000 });
    expect(clock.pending).toEqual([]);
  });
});

describe("waiting for several runs", () => {
  test("ends when the first of them has ended, with its outcome", async () => {
    const gate = new Gate();
    const { ask, belay, clock, began } = await served({
      wait: () => new Promise(() => {}),
      soon: () => gate.opened.then(() => "done"),
    });
    const [wait, soon] = [belay.prompt("wait"), belay.prompt("soon")];
    await Promise.all([began("wait"), began("soon")]);
    const answer = ask("GET", `/v1/outcomes?runs=${wait.id},${soon.id},${soon.id}&waitMs=7000`);
    while (clock.pending.length === 0) await settled();
    gate.open();
    expect(JSON.parse(String((await answer).body))).toEqual({
      ...{ outcomes: [{ runId: soon.id, outcome: { kind: "completed" } }], failed: [] },
    });
    expect(clock.pending).toEqual([]);
  });

  test("ends at the timeout with no outcome; and too many ids are refused", async () => {
    const { ask, belay, clock, began } = await served({ wait: () => new Promise(() => {}) });
    const { id } = belay.prompt("wait");
    await began("wait");
    const answer = ask("GET", `/v1/outcomes?runs=${id}&waitMs=7000`);
    await clock.advance(7_000);
    expect(JSON.parse(String((await answer).body))).toEqual({ outcomes: [], failed: [] });
    expect(clock.pending).toEqual([]);
    const many = Array.from({ length: OUTCOMES_TOGETHER_MAX + 1 }, (_, index) => `run_${index}`).join();
    expect(errorOf(await ask("GET", `/v1/outcomes?runs=${many}`))).toMatchObject({ code: "invalid" });
  });

  test("G28: returns an outcome even if the store of another run fails, and an error if all fail", async () => {
    const { belay, began, ...rest } = await served({ wait: () => new Promise(() => {}), done: () => "done" });
    const [troubled, done] = [belay.prompt("wait"), belay.prompt("done")];
    await Promise.all([began("wait"), done.outcome]);
    const control = new Proxy<BelayControl>(belay, {
      get: (target, name) =>
        name === "run"
          ? (id: string) =>
              id === troubled.id ? Promise.reject(new ControlError("unavailable", "No.")) : belay.run(id)
          : Reflect.get(target, name),
    });
    const { ask } = { ...rest, ...serve(control) };
    const both = await ask("GET", `/v1/outcomes?runs=${troubled.id},${done.id}`);
    expect(JSON.parse(String(both.body))).toMatchObject({ outcomes: [{ runId: done.id }], failed: [] });
    expect((await ask("GET", `/v1/outcomes?runs=${troubled.id}`)).status).toBe(503);
  });
});

test("a shutdown answers waiting requests with 202", async () => {
  const { ask, belay, clock, began, handler } = await served({ wait: () => new Promise(() => {}) });
  const { id } = belay.prompt("wait");
  await began("wait");
  const answer = ask("GET", `/v1/runs/${id}/outcome?waitMs=7000`);
  while (clock.pending.length === 0) await settled();
  await handler.drain();
  expect((await answer).status).toBe(202);
  expect(clock.pending).toEqual([]);
});

test("a client that disconnects ends its wait", async () => {
  const { handler, belay, clock, began } = await served({ wait: () => new Promise(() => {}) });
  const { id } = belay.prompt("wait");
  await began("wait");
  const gone = new AbortController();
  const headers = { host: "127.0.0.1:1", authorization: "Bearer ann" };
  const target = `/v1/runs/${id}/outcome?waitMs=7000`;
  const answer = handler.handle(plainRequest({ target, headers, signal: gone.signal }));
  while (clock.pending.length === 0) await settled();
  gone.abort();
  await answer;
  expect(clock.pending).toEqual([]);
});

test.each([
  ["", { kind: "user", by: "ann" }],
  ['{"reason":"no"}', { kind: "user", note: "no", by: "ann" }],
  ['{"reason":{"kind":"user","note":"no"}}', { kind: "user", note: "no", by: "ann" }],
  ['{"reason":{"kind":"user","by":"Zoe"}}', { kind: "user", by: "Zoe" }],
  ['{"reason":{"kind":"policy","note":"rule 4"}}', { kind: "policy", note: "rule 4" }],
])("a cancel with the body %j is recorded with its actor", async (body, reason) => {
  const { ask, belay, began } = await served({ wait: (turn) => untilAborted(turn.signal) });
  const run = belay.prompt("wait");
  await began("wait");
  await ask("POST", `/v1/runs/${run.id}/cancel`, body);
  expect(await run.outcome).toEqual({ kind: "cancelled", reason });
});

test("every mutation with a parameter in its path names its target for the audit trail", () => {
  for (const name of ROUTE_NAMES) {
    const { path, audit } = routeOf(name);
    if (isMutation(routeOf(name)) && paramsOf(path).length > 0) expect(paramsOf(path)).toContain(audit?.target);
  }
});
