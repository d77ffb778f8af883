import { describe, expect, test } from "vitest";
import { connected, until } from "../../../test/fixtures/connected-client.ts";
import { scriptedServer } from "../../../test/fixtures/scripted-server.ts";
import { STOP_UNRECORDED } from "../../core/errors.ts";
import { connectBelay } from "../belay-client.ts";
import { ATTEMPTS_MAX, REQUEST_MS, STOP_ATTEMPTS_MAX } from "../limits.ts";

const ROW = { id: "ses_1", head: 3, createdAt: 1, phase: "open" };

describe("a request", () => {
  test("sends the token and what it accepts, and returns the response", async () => {
    await using fixture = await connected();
    const row = fixture.client.session("ses_1").row();
    const asked = await fixture.server.next("GET /v1/sessions/ses_1");
    expect(asked.header("authorization")).toBe("Bearer secret");
    expect(asked.header("accept")).toBe("application/json");
    expect(asked.header("idempotency-key")).toBeUndefined();
    asked.json(200, ROW);
    expect(await row).toEqual(ROW);
  });

  test("that is refused rejects with the server's code, message and hint, and is not repeated", async () => {
    await using fixture = await connected();
    const row = fixture.client.session("ses_1").row();
    (await fixture.server.next("GET")).error(404, "not_found");
    await expect(row).rejects.toMatchObject({
      name: "ControlError",
      code: "not_found",
      message: "It is not_found.",
      hint: "A hint.",
      retryable: false,
      cause: { status: 404, requestId: "req_1" },
    });
    expect(fixture.server.heard).toHaveLength(1);
  });

  test.each([
    [400, "invalid"],
    [401, "unauthenticated"],
    [403, "forbidden"],
    [409, "conflict"],
    [409, "busy"],
    [429, "unauthenticated"],
    [429, "queue_full"],
    [500, "internal"],
  ])("answered with %i %s is not repeated", async (status, code) => {
    await using fixture = await connected();
    const row = fixture.client.session("ses_1").row();
    (await fixture.server.next("GET")).error(status, code, { "retry-after": "1" });
    await expect(row).rejects.toMatchObject({ code });
    expect(fixture.server.heard).toHaveLength(1);
  });

  test("with an unknown error code rejects as internal, with the server's message", async () => {
    await using fixture = await connected();
    const row = fixture.client.session("ses_1").row();
    (await fixture.server.next("GET")).error(418, "teapot");
    await expect(row).rejects.toMatchObject({ code: "internal", message: "It is teapot." });
  });

  test.each([
    ["no JSON", 200, "<html>hello</html>", "invalid"],
    ["an error page", 404, "<h1>Not Found</h1>", "invalid"],
    ["half an object", 200, '{"id":', "invalid"],
    ["an error that is none", 400, '{"error":"no"}', "invalid"],
    ["a crash page", 500, "oops", "unavailable"],
    ["a page that wants a token", 401, "<h1>Unauthorized</h1>", "unauthenticated"],
  ])("answered with %s fails and says that this is not Belay", async (_, status, text, code) => {
    await using fixture = await connected();
    const row = fixture.client.session("ses_1").row();
    (await fixture.server.next("GET")).text(status, text);
    await expect(row).rejects.toMatchObject({ code, message: expect.stringContaining(fixture.server.url) });
    expect(fixture.server.heard).toHaveLength(1);
  });

  const ODD: readonly (readonly [string, number, string, Readonly<Record<string, string>>])[] = [
    ["a large error page", 502, "x".repeat(70_000), { "content-type": "text/html" }],
    ["a page of maintenance", 200, "<h1>Back soon</h1>", { "content-type": "text/html" }],
    ["a crash page", 500, "oops", {}],
    ["a proxy that knows no backend", 404, "default backend - 404", {}],
    ["a redirect", 302, "", { location: "https://login.example.com" }],
  ];

  test.each(ODD)("G7: a stop that gets %s is repeated under its key", async (_, status, text, headers) => {
    await using fixture = await connected();
    const stopped = fixture.client.session("ses_1").cancel();
    const first = await fixture.server.next("POST");
    first.text(status, text, headers);
    await fixture.passPause();
    const second = await fixture.server.next("POST");
    expect(second.header("idempotency-key")).toBe(first.header("idempotency-key"));
    second.json(200, { kind: "idle", runs: [] });
    expect(await stopped).toEqual({ kind: "idle", runs: [] });
  });

  test.each([401, 413])("a prompt that a proxy always rejects (%i) fails at once", async (status) => {
    await using fixture = await connected();
    const { accepted } = fixture.client.session("ses_1").prompt("hello");
    (await fixture.server.next("POST")).text(status, "<h1>No</h1>");
    await expect(accepted).rejects.toMatchObject({ message: expect.stringContaining(fixture.server.url) });
    expect(fixture.server.heard).toHaveLength(1);
  });

  test("does not follow redirects, so that the token is sent to its own address only", async () => {
    await using fixture = await connected();
    const row = fixture.client.session("ses_1").row();
    (await fixture.server.next("GET")).text(302, "", { location: `${fixture.server.url}/elsewhere` });
    await expect(row).rejects.toMatchObject({ code: "invalid", message: expect.stringContaining("redirect") });
    expect(fixture.server.heard).toEqual(["GET /v1/sessions/ses_1"]);
  });
});

describe("retries", () => {
  test("G2: a prompt whose response was lost is repeated under the same key", async () => {
    await using fixture = await connected();
    const run = fixture.client.session("ses_1").prompt("hello");
    const first = await fixture.server.next("POST");
    await first.cut();
    await fixture.passPause();
    const second = await fixture.server.next("POST");
    expect(first.header("idempotency-key")).toBe("key-1");
    expect(second.header("idempotency-key")).toBe("key-1");
    expect(second.body).toEqual(first.body);
    second.json(202, { kind: "accepted", runId: "run_1", sessionId: "ses_1", seq: 2, joined: "queue", ahead: 0 });
    expect(await run.accepted).toMatchObject({ runId: "run_1" });
  });

  test.each([408, 429, 503, 502, 504])("%i is retried, not before the server's delay", async (status) => {
    await using fixture = await connected();
    const row = fixture.client.session("ses_1").row();
    (await fixture.server.next("GET")).error(status, "overloaded", { "retry-after": "7" });
    expect(await fixture.passPause()).toBe(7000);
    (await fixture.server.next("GET")).json(200, ROW);
    expect(await row).toEqual(ROW);
  });

  test("pauses grow, and after a number of attempts the request fails", async () => {
    await using fixture = await connected();
    const row = fixture.client.session("ses_1").row();
    const pauses: number[] = [];
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
      await (await fixture.server.next("GET")).cut();
      if (attempt < ATTEMPTS_MAX) pauses.push(await fixture.passPause());
    }
    await expect(row).rejects.toMatchObject({
      code: "disconnected",
      retryable: true,
      message: expect.stringContaining(fixture.server.url),
    });
    // Half of each step, since the test's random number is always 0.
    expect(pauses).toEqual([125, 250, 500, 1000, 2000, 4000, 5000]);
    expect(fixture.server.heard).toHaveLength(ATTEMPTS_MAX);
  });

  test("a stop that is carried out but cannot be recorded fails within seconds", async () => {
    await using fixture = await connected();
    const stopped = fixture.client.session("ses_1").cancel();
    const error = { code: "unavailable", message: "The server cannot do this at the moment.", hint: STOP_UNRECORDED };
    for (let attempt = 1; attempt <= STOP_ATTEMPTS_MAX; attempt += 1) {
      (await fixture.server.next("POST")).json(503, { error }, { "retry-after": "1" });
      if (attempt < STOP_ATTEMPTS_MAX) expect(await fixture.passPause()).toBe(1000);
    }
    await expect(stopped).rejects.toMatchObject({ code: "unavailable", hint: STOP_UNRECORDED });
    expect(fixture.server.heard).toHaveLength(STOP_ATTEMPTS_MAX);
  });

  test("a server's delay longer than `patienceMs` fails the request at once", async () => {
    await using fixture = await connected({ patienceMs: 5000 });
    const row = fixture.client.session("ses_1").row();
    (await fixture.server.next("GET")).error(503, "shutting_down", { "retry-after": "6" });
    await expect(row).rejects.toMatchObject({ code: "shutting_down" });
  });

  test("G7: a stop is given up when its server has gone before responding, even with endless patience", async () => {
    await using fixture = await connected({ patienceMs: Number.POSITIVE_INFINITY, absentMs: 10_000 });
    const stopped = fixture.client.cancelAll();
    const over = stopped.catch((error: unknown) => error);
    const asked = await fixture.server.next("POST");
    // A lost connection belongs to a server that is running.
    await asked.cut();
    await fixture.passPause();
    await (await fixture.server.next("POST")).cut();
    await fixture.server.die();
    const began = fixture.clock.elapsed();
    while (fixture.clock.elapsed() - began < 10_000) await fixture.passPause();
    expect(await over).toMatchObject({ code: "disconnected", message: expect.stringContaining(fixture.server.url) });
  });

  test("a request without a response times out, and is repeated", async () => {
    await using fixture = await connected();
    const row = fixture.client.session("ses_1").row();
    const silent = await fixture.server.next("GET");
    await fixture.clock.advance(REQUEST_MS);
    await silent.left();
    await fixture.passPause();
    (await fixture.server.next("GET")).json(200, ROW);
    expect(await row).toEqual(ROW);
  });

  test("a request that would do its work twice is not repeated: input of a process", async () => {
    await using fixture = await connected();
    const found = fixture.client.session("ses_1").processes.get("proc_1.1");
    (await fixture.server.next("GET")).json(200, { id: "proc_1.1", sessionId: "ses_1" });
    const written = (await found).write("ls\n");
    const input = await fixture.server.next("POST /v1/processes/proc_1.1/input");
    expect(input.body).toEqual({ data: "ls\n" });
    await input.cut();
    await expect(written).rejects.toMatchObject({ code: "disconnected" });
    expect(fixture.server.heard).toHaveLength(2);
  });
});

describe("connecting to a server", () => {
  test("that is not running fails with a clear message", async () => {
    const gone = await scriptedServer();
    await gone.die();
    await expect(connectBelay({ url: gone.url, patienceMs: 0 })).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining(gone.url),
      hint: expect.stringContaining("belay serve"),
    });
  });

  test("may use a path", async () => {
    await using fixture = await connected();
    const at = connectBelay({ url: `${fixture.server.url}/belay/`, token: "t" });
    (await fixture.server.next("GET /belay/v1/sessions?limit=1")).json(200, { sessions: [], next: null });
    await (await at).close();
  });

  test("fails if the token is refused, and not if it only has no read access", async () => {
    await using fixture = await connected();
    const url = `${fixture.server.url}/x`;
    const wrong = connectBelay({ url, token: "wrong" });
    (await fixture.server.next("GET")).error(401, "unauthenticated");
    await expect(wrong).rejects.toMatchObject({ code: "unauthenticated" });
    const narrow = connectBelay({ url, token: "narrow" });
    (await fixture.server.next("GET")).error(403, "forbidden");
    await (await narrow).close();
  });

  test.each([
    [{}, "url"],
    [{ url: "nonsense" }, "nonsense"],
    [{ url: "ftp://host" }, "http"],
    [{ url: "http://user:pw@host" }, "password"],
    [{ url: "http://host", token: "a\nb" }, "token"],
    [{ url: "http://host", patienceMs: -1 }, "patienceMs"],
    [{ url: "http://host", tokn: "x" }, "tokn"],
  ])("is refused before anything is sent: %j", async (options, word) => {
    await expect(connectBelay(options)).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining(word),
    });
  });
});

describe("close()", () => {
  test("rejects pending requests, and later ones, with a clear error", async () => {
    await using fixture = await connected();
    const row = fixture.client.session("ses_1").row();
    const asked = await fixture.server.next("GET");
    await fixture.client.close();
    await expect(row).rejects.toMatchObject({ code: "disconnected", message: expect.stringContaining("was closed") });
    await asked.left();
    await expect(fixture.client.status()).rejects.toThrow("was closed");
    expect(fixture.clock.pending).toEqual([]);
  });

  test("ends a pause between two attempts", async () => {
    await using fixture = await connected();
    const row = fixture.client.session("ses_1").row();
    await (await fixture.server.next("GET")).cut();
    await until(() => fixture.clock.pending.length > 0);
    await fixture.client.close();
    await expect(row).rejects.toMatchObject({ code: "disconnected" });
    expect(fixture.clock.pending).toEqual([]);
  });
});
