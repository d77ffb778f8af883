import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { connected, until } from "../../test/fixtures/connected-client.ts";
import { type Exchange, eventText } from "../../test/fixtures/scripted-server.ts";
import { ControlError } from "../core/errors.ts";
import type { PromptOptions } from "../ports/control.ts";
import type { BelayClient } from "./belay-client.ts";
import { WAIT_PIECE_MS } from "./limits.ts";
import type { ClientRun } from "./run.ts";

const PROMPT = "POST /v1/sessions/ses_1/runs";
const OUTCOME = "GET /v1/outcomes?runs=run_1";
const COMPLETED = { kind: "completed" };
const NOT_YET = { outcomes: [], failed: [] };
const ENDED = { outcomes: [{ runId: "run_1", outcome: COMPLETED }], failed: [] };
const STOPPING = { kind: "stopping", since: 4, first: true };

const accept = (exchange: Exchange, runId = "run_1", sessionId = "ses_1"): void =>
  exchange.json(202, { kind: "accepted", runId, sessionId, seq: 2, joined: "queue", ahead: 0, repeated: false });

const settledText = (seq: number): string =>
  eventText(seq, { type: "run.settled", runId: "run_1", outcome: COMPLETED });

describe("a prompt", () => {
  test("returns its run at once; the id is available after acceptance, and reading it earlier throws", async () => {
    await using fixture = await connected();
    const run = fixture.client.session("ses_1").prompt({ text: "hello", data: { a: 1 } }, { delivery: "steer" });
    expect(run.sessionId).toBe("ses_1");
    expect(() => run.id).toThrow(ControlError);
    expect(() => run.id).toThrow(/not known before/);
    const asked = await fixture.server.next(PROMPT);
    expect(asked.body).toEqual({ prompt: { text: "hello", data: { a: 1 } }, delivery: "steer" });
    accept(asked);
    expect(await run.accepted).toEqual({
      ...{ kind: "accepted", runId: "run_1", seq: 2, joined: "queue", ahead: 0, repeated: false },
    });
    expect(run.id).toBe("run_1");
  });

  test("that creates its own session gets the session id with its acceptance", async () => {
    await using fixture = await connected();
    const run = fixture.client.prompt("hello", { title: "One", key: "mine" });
    expect(() => run.sessionId).toThrow(/not known before/);
    const asked = await fixture.server.next("POST /v1/runs");
    expect(asked.header("idempotency-key")).toBe("mine");
    expect(asked.body).toEqual({ prompt: { text: "hello" }, title: "One" });
    accept(asked, "run_1", "ses_9");
    await run.accepted;
    expect(run.sessionId).toBe("ses_9");
  });

  test("that is refused rejects `accepted` and `outcome`, without an unhandled rejection", async () => {
    await using fixture = await connected();
    const run = fixture.client.session("ses_1").prompt("hello");
    (await fixture.server.next(PROMPT)).error(409, "closed");
    await expect(run.accepted).rejects.toMatchObject({ code: "closed" });
    await expect(run.outcome).rejects.toMatchObject({ code: "closed" });
    await expect(run.text()).rejects.toMatchObject({ code: "closed" });
  });

  test.each([
    ["", {}, "empty"],
    ["x", { key: "" }, "key"],
    ["x", { key: "naïve" }, "ASCII"],
    ["x", { key: ".." }, "dots"],
    ["x", { wait: true }, "wait"],
    [{ text: "x", data: Number.NaN }, {}, "NaN"],
    [{ text: "x", data: { f: () => 1 } }, {}, "function"],
    ["x".repeat(1024 * 1024 + 1), {}, "limit"],
  ])("that could never be accepted throws at once: %j %j", async (prompt, options, word) => {
    await using fixture = await connected();
    const ask = (): unknown => fixture.client.session("ses_1").prompt(prompt as string, options as PromptOptions);
    expect(ask).toThrow(word);
    expect(fixture.server.heard).toEqual([]);
  });

  test("waits for the previous one in its session, and for none in other sessions", async () => {
    await using fixture = await connected();
    const one = fixture.client.session("ses_1");
    const runs = [one.prompt("a"), one.prompt("b"), fixture.client.session("ses_1").prompt("c")];
    const other = fixture.client.session("ses_2").prompt("x");
    const first = await fixture.server.next(PROMPT);
    accept(await fixture.server.next("POST /v1/sessions/ses_2/runs"), "run_x", "ses_2");
    await other.accepted;
    expect(fixture.server.heard).toHaveLength(2);
    first.error(409, "busy");
    await expect(runs[0]?.accepted).rejects.toMatchObject({ code: "busy" });
    for (const text of ["b", "c"]) {
      const next = await fixture.server.next(PROMPT);
      expect(next.body).toEqual({ prompt: { text } });
      accept(next, `run_${text}`);
    }
    expect(await runs[2]?.accepted).toMatchObject({ runId: "run_c" });
  });
});

describe("an outcome", () => {
  test("is requested until it is recorded, across lost connections", async () => {
    await using fixture = await connected();
    const run = fixture.client.session("ses_1").prompt("hello");
    const { outcome } = run;
    accept(await fixture.server.next(PROMPT));
    const waiting = await fixture.server.next(OUTCOME);
    expect(waiting.line).toBe(`${OUTCOME}&waitMs=${WAIT_PIECE_MS}`);
    waiting.json(200, NOT_YET);
    await (await fixture.server.next(OUTCOME)).cut();
    await fixture.passPause();
    (await fixture.server.next(OUTCOME)).json(200, NOT_YET);
    (await fixture.server.next(OUTCOME)).json(200, ENDED);
    expect(await outcome).toEqual(COMPLETED);
    expect(await run.outcome).toEqual(COMPLETED);
    expect(fixture.server.heard.filter((line) => line.startsWith(OUTCOME))).toHaveLength(4);
  });

  test("rejects with `disconnected` when the server stays away longer than `patienceMs`", async () => {
    await using fixture = await connected({ patienceMs: 10_000 });
    const run = fixture.client.session("ses_1").prompt("hello");
    accept(await fixture.server.next(PROMPT));
    const { outcome } = run;
    const asked = await fixture.server.next(OUTCOME);
    await fixture.server.die();
    await asked.left();
    const began = fixture.clock.elapsed();
    const over = outcome.then(
      () => "told",
      (error: unknown) => error,
    );
    while (fixture.clock.elapsed() - began < 10_000) await fixture.passPause();
    expect(await over).toMatchObject({ code: "disconnected", message: expect.stringContaining(fixture.server.url) });
  });

  test("is awaited without a limit if `patienceMs` is Infinity", async () => {
    await using fixture = await connected({ patienceMs: Number.POSITIVE_INFINITY });
    const run = fixture.client.session("ses_1").prompt("hello");
    accept(await fixture.server.next(PROMPT));
    const { outcome } = run;
    for (let cut = 0; cut < 40; cut += 1) {
      await (await fixture.server.next(OUTCOME)).cut();
      await fixture.passPause();
    }
    expect(fixture.clock.elapsed()).toBeGreaterThan(150_000);
    (await fixture.server.next(OUTCOME)).json(200, ENDED);
    expect(await outcome).toEqual(COMPLETED);
  });

  test("is taken from an event stream that reports it first, and its request ends", async () => {
    await using fixture = await connected();
    const run = fixture.client.session("ses_1").prompt("hello");
    accept(await fixture.server.next(PROMPT));
    const { outcome } = run;
    const asked = await fixture.server.next(OUTCOME);
    const heard = Array.fromAsync(run);
    (await fixture.server.next("GET /v1/runs/run_1/events")).stream().say(settledText(9));
    expect(await outcome).toEqual(COMPLETED);
    await asked.left();
    expect(await heard).toHaveLength(1);
  });

  test("resolves inside a loop over the events of the run", async () => {
    await using fixture = await connected();
    const run = fixture.client.session("ses_1").prompt("hello");
    accept(await fixture.server.next(PROMPT));
    const looped = (async () => {
      for await (const _ of run) return await run.outcome;
      return undefined;
    })();
    (await fixture.server.next("GET /v1/runs/run_1/events")).stream().events(2);
    (await fixture.server.next(OUTCOME)).json(200, ENDED);
    expect(await looped).toEqual(COMPLETED);
  });
});

describe("its events", () => {
  test("start with its acceptance and end with its outcome, across lost connections", async () => {
    await using fixture = await connected();
    const run = fixture.client.session("ses_1").prompt("hello");
    const heard = Array.fromAsync(run);
    accept(await fixture.server.next(PROMPT));
    const first = (await fixture.server.next("GET /v1/runs/run_1/events")).stream();
    expect(first.line).toBe("GET /v1/runs/run_1/events?after=1&deltas=with");
    // Positions of other runs are left out, which is not a hole.
    first.events(2, 5);
    await first.cut();
    await fixture.passPause();
    const second = (await fixture.server.next("GET /v1/runs/run_1/events")).stream();
    second.events(5, 8).say(settledText(9));
    expect((await heard).map((one) => "seq" in one && one.seq)).toEqual([2, 5, 8, 9]);
    await second.left();
    expect(await run.outcome).toEqual(COMPLETED);
    expect(fixture.server.heard.some((line) => line.startsWith(OUTCOME))).toBe(false);
  });

  test("contain its text, without the text of a turn that was requested again", async () => {
    await using fixture = await connected();
    const run = fixture.client.session("ses_1").prompt("hello");
    const text = run.text({ all: true });
    accept(await fixture.server.next(PROMPT));
    const server = (await fixture.server.next("GET /v1/runs/run_1/events?after=1&deltas=without")).stream();
    const of = (ordinal: number): object => ({ runId: "run_1", turnId: `turn_1.${ordinal}` });
    const said = (ordinal: number, text: string): object => ({ ...of(ordinal), type: "turn.extended", text });
    const over = { type: "turn.settled", next: "turn" };
    server.say(eventText(3, { ...over, ...of(1), text: "One. ", outcome: COMPLETED }));
    server.say(eventText(4, said(2, "Tw")));
    server.say(eventText(5, { ...over, ...of(2), outcome: { kind: "lost" } }));
    server.say(eventText(6, { type: "run.recovered", runId: "run_1", attempt: 2 }));
    server.say(eventText(7, said(3, "Two"))).say(eventText(8, said(3, ".")));
    server.say(settledText(9));
    expect(await text).toBe("One. \n\nTwo.");
  });
});

describe("G7: a cancel of a run", () => {
  const BY_KEY = "POST /v1/sessions/ses_1/prompts/key-1/cancel";
  const BY_ID = "POST /v1/runs/run_1/cancel";

  test("before its acceptance names it by the key of its prompt", async () => {
    await using fixture = await connected();
    const run = fixture.client.session("ses_1").prompt("hello");
    const cancelled = run.cancel({ reason: "changed my mind" });
    const prompt = await fixture.server.next(PROMPT);
    const cancel = await fixture.server.next(BY_KEY);
    expect(cancel.body).toEqual({ reason: "changed my mind", early: true });
    cancel.json(200, { kind: "withdrawn", runId: "run_1" });
    expect(await cancelled).toMatchObject({ kind: "withdrawn" });
    accept(prompt);
    await run.accepted;
    expect(fixture.server.heard).toHaveLength(2);
  });

  test("that overtakes its prompt is remembered by the server: nothing is sent after it", async () => {
    await using fixture = await connected();
    const run = fixture.client.session("ses_1").prompt("hello");
    const cancelled = run.cancel({ reason: "no" });
    const prompt = await fixture.server.next(PROMPT);
    (await fixture.server.next(BY_KEY)).json(200, { kind: "withdrawn" });
    expect(await cancelled).toEqual({ kind: "withdrawn" });
    accept(prompt);
    await run.accepted;
    expect(fixture.server.heard).toHaveLength(2);
  });

  test("that overtakes a prompt which is then refused stops nothing", async () => {
    await using fixture = await connected();
    const run = fixture.client.session("ses_1").prompt("hello");
    const cancelled = run.cancel();
    (await fixture.server.next(BY_KEY)).json(200, { kind: "unknown" });
    (await fixture.server.next(PROMPT)).error(409, "closed");
    expect(await cancelled).toEqual({ kind: "unknown" });
  });

  test.each([
    [409, "conflict"],
    [409, "closed"],
    [409, "busy"],
    [429, "queue_full"],
  ])(
    "of a prompt that was refused (%i %s) sends nothing, so that it cannot stop another run with its key",
    async (status, code) => {
      await using fixture = await connected();
      const run = fixture.client.session("ses_1").prompt("other", { key: "k" });
      (await fixture.server.next(PROMPT)).error(status, code);
      await expect(run.accepted).rejects.toMatchObject({ code });
      expect(await run.cancel()).toEqual({ kind: "unknown" });
      expect(await run.cancel({ key: "stop", waitMs: 1000 })).toEqual({ kind: "unknown" });
      expect(fixture.server.heard).toHaveLength(1);
    },
  );

  test.each<[what: string, code: string, fail: (prompt: Exchange) => unknown]>([
    ["by a server that could not record it", "unavailable", (prompt) => prompt.error(503, "unavailable")],
    ["by a proxy that knows nothing of it", "invalid", (prompt) => prompt.text(404, "no such backend")],
    ["by the line", "disconnected", (prompt) => prompt.cut()],
  ])("names the prompt by its key if that failed %s, because it may have arrived", async (_, code, fail) => {
    await using fixture = await connected({ patienceMs: 0 });
    const run = fixture.client.session("ses_1").prompt("hello");
    await fail(await fixture.server.next(PROMPT));
    await expect(run.accepted).rejects.toMatchObject({ code });
    const cancelled = run.cancel();
    (await fixture.server.next(BY_KEY)).json(200, { ...STOPPING, runId: "run_1" });
    expect(await cancelled).toMatchObject(STOPPING);
  });

  test("is not answered as unknown while the fate of the prompt is unknown", async () => {
    await using fixture = await connected({ patienceMs: 0 });
    const run = fixture.client.session("ses_1").prompt("hello");
    const cancelled = run.cancel();
    await (await fixture.server.next(PROMPT)).cut();
    await (await fixture.server.next(BY_KEY)).cut();
    await expect(cancelled).rejects.toMatchObject({ code: "disconnected" });
  });

  test("in its own session uses the key of its prompt, before the session id is known", async () => {
    await using fixture = await connected();
    const run = fixture.client.prompt("hello", { key: "k 1" });
    const cancelled = run.cancel();
    const begun = await fixture.server.next("POST /v1/runs");
    (await fixture.server.next("POST /v1/prompts/k%201/cancel")).json(200, { ...STOPPING, runId: "run_1" });
    expect(await cancelled).toMatchObject(STOPPING);
    accept(begun, "run_1", "ses_9");
    await run.accepted;
  });

  test("G10: is the same cancel when it is repeated after a lost response", async () => {
    await using fixture = await connected();
    const found = fixture.client.run("run_1");
    const row = { id: "run_1", session: "ses_1", phase: "live", acceptedAt: 2 };
    (await fixture.server.next("GET /v1/runs/run_1")).json(200, row);
    const cancelled = (await found).cancel();
    const first = await fixture.server.next(BY_ID);
    await first.cut();
    await fixture.passPause();
    const second = await fixture.server.next(BY_ID);
    expect(second.header("idempotency-key")).toBe(first.header("idempotency-key"));
    second.json(200, STOPPING);
    expect(await cancelled).toEqual(STOPPING);
  });

  test("with a caller's key is the same request before and after the acceptance", async () => {
    await using fixture = await connected();
    const run = fixture.client.session("ses_1").prompt("hello");
    const one = run.cancel({ key: "stop" });
    (await fixture.server.next(BY_KEY)).json(200, { ...STOPPING, runId: "run_1" });
    accept(await fixture.server.next(PROMPT));
    await run.accepted;
    const two = run.cancel({ key: "stop" });
    const again = await fixture.server.next(BY_KEY);
    expect(again.header("idempotency-key")).toBe("stop");
    again.json(200, { ...STOPPING, runId: "run_1" });
    expect(await two).toEqual(await one);
  });

  test("with a long wait is repeated with the remaining time, under the same key", async () => {
    await using fixture = await connected();
    const cancelled = fixture.client.cancel("run_1", { waitMs: WAIT_PIECE_MS + 5000 });
    const recorded = await fixture.server.next(BY_ID);
    expect(recorded.body).toEqual({ waitMs: 0 });
    recorded.json(200, { ...STOPPING, ended: { kind: "limit", waitMs: 0 } });
    const first = await fixture.server.next(BY_ID);
    expect(first.body).toEqual({ waitMs: WAIT_PIECE_MS });
    await fixture.clock.advance(WAIT_PIECE_MS);
    first.json(200, { ...STOPPING, ended: { kind: "limit", waitMs: WAIT_PIECE_MS } });
    const second = await fixture.server.next(BY_ID);
    expect(second.body).toEqual({ waitMs: 5000 });
    const keys = [recorded, first, second].map((one) => one.header("idempotency-key"));
    expect(new Set(keys).size).toBe(1);
    second.json(200, { kind: "settled", outcome: COMPLETED });
    expect(await cancelled).toEqual({ ...STOPPING, ended: { kind: "settled", outcome: COMPLETED } });
  });

  test("whose wait ends before the run reports that limit", async () => {
    await using fixture = await connected();
    const waitMs = WAIT_PIECE_MS + 5000;
    const cancelled = fixture.client.cancel("run_1", { waitMs });
    for (const pieceMs of [0, WAIT_PIECE_MS, 5000]) {
      const piece = await fixture.server.next(BY_ID);
      await fixture.clock.advance(pieceMs);
      piece.json(200, { ...STOPPING, ended: { kind: "limit", waitMs: pieceMs } });
    }
    expect(await cancelled).toEqual({ ...STOPPING, ended: { kind: "limit", waitMs } });
  });

  const STOPS: Readonly<Record<string, (client: BelayClient, run: ClientRun) => Promise<unknown>>> = {
    "run.cancel()": (_, run) => run.cancel(),
    "run.cancel() that waits for the end": (_, run) => run.cancel({ waitMs: 60_000 }),
    "cancel() of a run": (client) => client.cancel("run_1"),
    "cancel() of a call": (client) => client.cancel("call_1.1"),
    "cancelCall()": (client) => client.session("ses_1").cancelCall("call_1.1"),
    "cancelPrompt()": (client) => client.session("ses_1").cancelPrompt("k"),
    "cancelPrompt() of a prompt with its own session": (client) => client.cancelPrompt("k"),
    "queue.withdraw()": (client) => client.session("ses_1").queue.withdraw("run_1"),
    "queue.clear()": (client) => client.session("ses_1").queue.clear(),
    "close()": (client) => client.session("ses_1").close(),
    "delete()": (client) => client.session("ses_1").delete(),
  };

  test.each(Object.entries(STOPS))("G7: a prompt called after %s is sent once that is recorded", async (_, stop) => {
    await using fixture = await connected();
    const run = fixture.client.session("ses_1").prompt("a");
    accept(await fixture.server.next(PROMPT));
    await run.accepted;
    const stopped = stop(fixture.client, run);
    const behind = fixture.client.session("ses_1").prompt("b", { delivery: "steer" });
    const asked = await fixture.server.next("");
    expect(asked.line).toMatch(/^(POST .*\/(cancel|delete)|DELETE .*)$/);
    // A prompt that is not held back would be sent within a turn of the event loop.
    await Array.fromAsync({ length: 20 }, () => nextTurn());
    expect(fixture.server.heard).toHaveLength(2);
    asked.json(200, STOPPING);
    const prompt = await fixture.server.next(PROMPT);
    expect(prompt.body).toMatchObject({ prompt: { text: "b" } });
    accept(prompt, "run_2");
    await behind.accepted;
    stopped.catch(() => {});
  });

  test("G33: a stop whose promise is dropped does not end the program when it is refused", async () => {
    await using fixture = await connected();
    const run = fixture.client.session("ses_1").prompt("a");
    accept(await fixture.server.next(PROMPT));
    await run.accepted;
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", note);
    await fixture.client.close();
    for (const stop of Object.values(STOPS)) void stop(fixture.client, run);
    await Array.fromAsync({ length: 5 }, () => nextTurn());
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
  });

  test("before the acceptance waits for the end if `waitMs` is given", async () => {
    await using fixture = await connected();
    const run = fixture.client.session("ses_1").prompt("hello");
    const cancelled = run.cancel({ waitMs: 1000 });
    (await fixture.server.next(BY_KEY)).json(200, { ...STOPPING, runId: "run_1" });
    const wait = await fixture.server.next(BY_ID);
    expect(wait.body).toEqual({ waitMs: 1000 });
    wait.json(200, { ...STOPPING, first: false, ended: { kind: "settled", outcome: COMPLETED } });
    expect(await cancelled).toMatchObject({ ...STOPPING, ended: { kind: "settled", outcome: COMPLETED } });
  });
});

test("close() rejects pending promises: acceptance, outcome, events, a cancel", async () => {
  await using fixture = await connected();
  const run = fixture.client.session("ses_1").prompt("hello");
  const done = fixture.client.run("run_2");
  (await fixture.server.next("GET /v1/runs/run_2")).json(200, {
    id: "run_2",
    session: "ses_1",
    phase: "live",
    acceptedAt: 2,
  });
  const other = await done;
  const pending = [run.accepted, run.outcome, run.text(), run.cancel(), other.outcome, other.text(), other.cancel()];
  await until(() => fixture.server.heard.length >= 6);
  await fixture.client.close();
  for (const one of pending) await expect(one).rejects.toMatchObject({ code: "disconnected" });
  expect(fixture.clock.pending).toEqual([]);
});
