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
  test("hands back its run at once; the id is known when it is accepted, and asking earlier says so", async () => {
    await using house = await connected();
    const run = house.client.session("ses_1").prompt({ text: "hello", data: { a: 1 } }, { delivery: "steer" });
    expect(run.sessionId).toBe("ses_1");
    expect(() => run.id).toThrow(ControlError);
    expect(() => run.id).toThrow(/not known before/);
    const asked = await house.server.next(PROMPT);
    expect(asked.body).toEqual({ prompt: { text: "hello", data: { a: 1 } }, delivery: "steer" });
    accept(asked);
    expect(await run.accepted).toEqual({
      ...{ kind: "accepted", runId: "run_1", seq: 2, joined: "queue", ahead: 0, repeated: false },
    });
    expect(run.id).toBe("run_1");
  });

  test("in a session of its own learns of that when it is accepted", async () => {
    await using house = await connected();
    const run = house.client.prompt("hello", { title: "One", key: "mine" });
    expect(() => run.sessionId).toThrow(/not known before/);
    const asked = await house.server.next("POST /v1/runs");
    expect(asked.header("idempotency-key")).toBe("mine");
    expect(asked.body).toEqual({ prompt: { text: "hello" }, title: "One" });
    accept(asked, "run_1", "ses_9");
    await run.accepted;
    expect(run.sessionId).toBe("ses_9");
  });

  test("that is refused rejects, and so does its outcome; whoever does not look is not taken down", async () => {
    await using house = await connected();
    const run = house.client.session("ses_1").prompt("hello");
    (await house.server.next(PROMPT)).error(409, "closed");
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
    await using house = await connected();
    const ask = (): unknown => house.client.session("ses_1").prompt(prompt as string, options as PromptOptions);
    expect(ask).toThrow(word);
    expect(house.server.heard).toEqual([]);
  });

  test("waits for the one before it in its session, and for none of another", async () => {
    await using house = await connected();
    const one = house.client.session("ses_1");
    const runs = [one.prompt("a"), one.prompt("b"), house.client.session("ses_1").prompt("c")];
    const other = house.client.session("ses_2").prompt("x");
    const first = await house.server.next(PROMPT);
    accept(await house.server.next("POST /v1/sessions/ses_2/runs"), "run_x", "ses_2");
    await other.accepted;
    expect(house.server.heard).toHaveLength(2);
    first.error(409, "busy");
    await expect(runs[0]?.accepted).rejects.toMatchObject({ code: "busy" });
    for (const text of ["b", "c"]) {
      const next = await house.server.next(PROMPT);
      expect(next.body).toEqual({ prompt: { text } });
      accept(next, `run_${text}`);
    }
    expect(await runs[2]?.accepted).toMatchObject({ runId: "run_c" });
  });
});

describe("an outcome", () => {
  test("is asked for again and again until it is recorded, over cuts as well", async () => {
    await using house = await connected();
    const run = house.client.session("ses_1").prompt("hello");
    const { outcome } = run;
    accept(await house.server.next(PROMPT));
    const waiting = await house.server.next(OUTCOME);
    expect(waiting.line).toBe(`${OUTCOME}&waitMs=${WAIT_PIECE_MS}`);
    waiting.json(200, NOT_YET);
    await (await house.server.next(OUTCOME)).cut();
    await house.passPause();
    (await house.server.next(OUTCOME)).json(200, NOT_YET);
    (await house.server.next(OUTCOME)).json(200, ENDED);
    expect(await outcome).toEqual(COMPLETED);
    expect(await run.outcome).toEqual(COMPLETED);
    expect(house.server.heard.filter((line) => line.startsWith(OUTCOME))).toHaveLength(4);
  });

  test("is `disconnected` when the server stays away for longer than there is patience", async () => {
    await using house = await connected({ patienceMs: 10_000 });
    const run = house.client.session("ses_1").prompt("hello");
    accept(await house.server.next(PROMPT));
    const { outcome } = run;
    const asked = await house.server.next(OUTCOME);
    await house.server.die();
    await asked.left();
    const began = house.clock.elapsed();
    const over = outcome.then(
      () => "told",
      (error: unknown) => error,
    );
    while (house.clock.elapsed() - began < 10_000) await house.passPause();
    expect(await over).toMatchObject({ code: "disconnected", message: expect.stringContaining(house.server.url) });
  });

  test("with patience without end is waited for however long it takes", async () => {
    await using house = await connected({ patienceMs: Number.POSITIVE_INFINITY });
    const run = house.client.session("ses_1").prompt("hello");
    accept(await house.server.next(PROMPT));
    const { outcome } = run;
    for (let cut = 0; cut < 40; cut += 1) {
      await (await house.server.next(OUTCOME)).cut();
      await house.passPause();
    }
    expect(house.clock.elapsed()).toBeGreaterThan(150_000);
    (await house.server.next(OUTCOME)).json(200, ENDED);
    expect(await outcome).toEqual(COMPLETED);
  });

  test("is taken from the stream if that tells it first, and the asking ends", async () => {
    await using house = await connected();
    const run = house.client.session("ses_1").prompt("hello");
    accept(await house.server.next(PROMPT));
    const { outcome } = run;
    const asked = await house.server.next(OUTCOME);
    const heard = Array.fromAsync(run);
    (await house.server.next("GET /v1/runs/run_1/events")).stream().say(settledText(9));
    expect(await outcome).toEqual(COMPLETED);
    await asked.left();
    expect(await heard).toHaveLength(1);
  });

  test("is awaited inside a loop over the events of the run", async () => {
    await using house = await connected();
    const run = house.client.session("ses_1").prompt("hello");
    accept(await house.server.next(PROMPT));
    const looped = (async () => {
      for await (const _ of run) return await run.outcome;
      return undefined;
    })();
    (await house.server.next("GET /v1/runs/run_1/events")).stream().events(2);
    (await house.server.next(OUTCOME)).json(200, ENDED);
    expect(await looped).toEqual(COMPLETED);
  });
});

describe("its events", () => {
  test("go from acceptance to outcome, over cuts, and end there although the stream does not", async () => {
    await using house = await connected();
    const run = house.client.session("ses_1").prompt("hello");
    const heard = Array.fromAsync(run);
    accept(await house.server.next(PROMPT));
    const first = (await house.server.next("GET /v1/runs/run_1/events")).stream();
    expect(first.line).toBe("GET /v1/runs/run_1/events?after=1&deltas=with");
    // Positions of other runs are left out, which is no hole.
    first.events(2, 5);
    await first.cut();
    await house.passPause();
    const second = (await house.server.next("GET /v1/runs/run_1/events")).stream();
    second.events(5, 8).say(settledText(9));
    expect((await heard).map((one) => "seq" in one && one.seq)).toEqual([2, 5, 8, 9]);
    await second.left();
    expect(await run.outcome).toEqual(COMPLETED);
    expect(house.server.heard.some((line) => line.startsWith(OUTCOME))).toBe(false);
  });

  test("make up its text, without what a turn said that was asked again", async () => {
    await using house = await connected();
    const run = house.client.session("ses_1").prompt("hello");
    const text = run.text({ all: true });
    accept(await house.server.next(PROMPT));
    const server = (await house.server.next("GET /v1/runs/run_1/events?after=1&deltas=without")).stream();
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

  test("is sent before its acceptance was answered, by the key of its prompt", async () => {
    await using house = await connected();
    const run = house.client.session("ses_1").prompt("hello");
    const cancelled = run.cancel({ reason: "changed my mind" });
    const prompt = await house.server.next(PROMPT);
    const cancel = await house.server.next(BY_KEY);
    expect(cancel.body).toEqual({ reason: "changed my mind", early: true });
    cancel.json(200, { kind: "withdrawn", runId: "run_1" });
    expect(await cancelled).toMatchObject({ kind: "withdrawn" });
    accept(prompt);
    await run.accepted;
    expect(house.server.heard).toHaveLength(2);
  });

  test("that overtook its prompt is the server's to remember: nothing is sent behind it", async () => {
    await using house = await connected();
    const run = house.client.session("ses_1").prompt("hello");
    const cancelled = run.cancel({ reason: "no" });
    const prompt = await house.server.next(PROMPT);
    (await house.server.next(BY_KEY)).json(200, { kind: "withdrawn" });
    expect(await cancelled).toEqual({ kind: "withdrawn" });
    accept(prompt);
    await run.accepted;
    expect(house.server.heard).toHaveLength(2);
  });

  test("that overtook a prompt which is then refused has nothing to stop", async () => {
    await using house = await connected();
    const run = house.client.session("ses_1").prompt("hello");
    const cancelled = run.cancel();
    (await house.server.next(BY_KEY)).json(200, { kind: "unknown" });
    (await house.server.next(PROMPT)).error(409, "closed");
    expect(await cancelled).toEqual({ kind: "unknown" });
  });

  test.each([
    [409, "conflict"],
    [409, "closed"],
    [409, "busy"],
    [429, "queue_full"],
  ])(
    "of a prompt that was refused (%i %s) stops nobody else's run under its key: nothing is sent",
    async (status, code) => {
      await using house = await connected();
      const run = house.client.session("ses_1").prompt("other", { key: "k" });
      (await house.server.next(PROMPT)).error(status, code);
      await expect(run.accepted).rejects.toMatchObject({ code });
      expect(await run.cancel()).toEqual({ kind: "unknown" });
      expect(await run.cancel({ key: "stop", waitMs: 1000 })).toEqual({ kind: "unknown" });
      expect(house.server.heard).toHaveLength(1);
    },
  );

  test.each<[what: string, code: string, fail: (prompt: Exchange) => unknown]>([
    ["by a server that could not record it", "unavailable", (prompt) => prompt.error(503, "unavailable")],
    ["by a proxy that knows nothing of it", "invalid", (prompt) => prompt.text(404, "no such backend")],
    ["by the line", "disconnected", (prompt) => prompt.cut()],
  ])("goes by the key if the prompt was failed %s: it may be there all the same", async (_, code, fail) => {
    await using house = await connected({ patienceMs: 0 });
    const run = house.client.session("ses_1").prompt("hello");
    await fail(await house.server.next(PROMPT));
    await expect(run.accepted).rejects.toMatchObject({ code });
    const cancelled = run.cancel();
    (await house.server.next(BY_KEY)).json(200, { ...STOPPING, runId: "run_1" });
    expect(await cancelled).toMatchObject(STOPPING);
  });

  test("is not said to be unknown while nobody knows whether the prompt arrived", async () => {
    await using house = await connected({ patienceMs: 0 });
    const run = house.client.session("ses_1").prompt("hello");
    const cancelled = run.cancel();
    await (await house.server.next(PROMPT)).cut();
    await (await house.server.next(BY_KEY)).cut();
    await expect(cancelled).rejects.toMatchObject({ code: "disconnected" });
  });

  test("in a session of its own is sent by the key of its prompt, before the session has a name", async () => {
    await using house = await connected();
    const run = house.client.prompt("hello", { key: "k 1" });
    const cancelled = run.cancel();
    const begun = await house.server.next("POST /v1/runs");
    (await house.server.next("POST /v1/prompts/k%201/cancel")).json(200, { ...STOPPING, runId: "run_1" });
    expect(await cancelled).toMatchObject(STOPPING);
    accept(begun, "run_1", "ses_9");
    await run.accepted;
  });

  test("G10: whose answer was cut off is the same cancel again", async () => {
    await using house = await connected();
    const found = house.client.run("run_1");
    const row = { id: "run_1", session: "ses_1", phase: "live", acceptedAt: 2 };
    (await house.server.next("GET /v1/runs/run_1")).json(200, row);
    const cancelled = (await found).cancel();
    const first = await house.server.next(BY_ID);
    await first.cut();
    await house.passPause();
    const second = await house.server.next(BY_ID);
    expect(second.header("idempotency-key")).toBe(first.header("idempotency-key"));
    second.json(200, STOPPING);
    expect(await cancelled).toEqual(STOPPING);
  });

  test("under a key of the caller's own goes the same way before and after the acceptance", async () => {
    await using house = await connected();
    const run = house.client.session("ses_1").prompt("hello");
    const one = run.cancel({ key: "stop" });
    (await house.server.next(BY_KEY)).json(200, { ...STOPPING, runId: "run_1" });
    accept(await house.server.next(PROMPT));
    await run.accepted;
    const two = run.cancel({ key: "stop" });
    const again = await house.server.next(BY_KEY);
    expect(again.header("idempotency-key")).toBe("stop");
    again.json(200, { ...STOPPING, runId: "run_1" });
    expect(await two).toEqual(await one);
  });

  test("that waits longer than a connection lasts asks again with what is left, under the same key", async () => {
    await using house = await connected();
    const cancelled = house.client.cancel("run_1", { waitMs: WAIT_PIECE_MS + 5000 });
    const recorded = await house.server.next(BY_ID);
    expect(recorded.body).toEqual({ waitMs: 0 });
    recorded.json(200, { ...STOPPING, ended: { kind: "limit", waitMs: 0 } });
    const first = await house.server.next(BY_ID);
    expect(first.body).toEqual({ waitMs: WAIT_PIECE_MS });
    await house.clock.advance(WAIT_PIECE_MS);
    first.json(200, { ...STOPPING, ended: { kind: "limit", waitMs: WAIT_PIECE_MS } });
    const second = await house.server.next(BY_ID);
    expect(second.body).toEqual({ waitMs: 5000 });
    const keys = [recorded, first, second].map((one) => one.header("idempotency-key"));
    expect(new Set(keys).size).toBe(1);
    second.json(200, { kind: "settled", outcome: COMPLETED });
    expect(await cancelled).toEqual({ ...STOPPING, ended: { kind: "settled", outcome: COMPLETED } });
  });

  test("whose time is over before the end says so, with the time that was asked for", async () => {
    await using house = await connected();
    const waitMs = WAIT_PIECE_MS + 5000;
    const cancelled = house.client.cancel("run_1", { waitMs });
    for (const pieceMs of [0, WAIT_PIECE_MS, 5000]) {
      const piece = await house.server.next(BY_ID);
      await house.clock.advance(pieceMs);
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
    "cancelPrompt() of a session of its own": (client) => client.cancelPrompt("k"),
    "queue.withdraw()": (client) => client.session("ses_1").queue.withdraw("run_1"),
    "queue.clear()": (client) => client.session("ses_1").queue.clear(),
    "close()": (client) => client.session("ses_1").close(),
    "delete()": (client) => client.session("ses_1").delete(),
  };

  test.each(Object.entries(STOPS))("G7: a prompt called after %s is sent when that is recorded", async (_, stop) => {
    await using house = await connected();
    const run = house.client.session("ses_1").prompt("a");
    accept(await house.server.next(PROMPT));
    await run.accepted;
    const stopped = stop(house.client, run);
    const behind = house.client.session("ses_1").prompt("b", { delivery: "steer" });
    const asked = await house.server.next("");
    expect(asked.line).toMatch(/^(POST .*\/(cancel|delete)|DELETE .*)$/);
    // A turn of the event loop in which nothing is held back would send the prompt.
    await Array.fromAsync({ length: 20 }, () => nextTurn());
    expect(house.server.heard).toHaveLength(2);
    asked.json(200, STOPPING);
    const prompt = await house.server.next(PROMPT);
    expect(prompt.body).toMatchObject({ prompt: { text: "b" } });
    accept(prompt, "run_2");
    await behind.accepted;
    stopped.catch(() => {});
  });

  test("before the acceptance waits for the end as well, if it is asked to", async () => {
    await using house = await connected();
    const run = house.client.session("ses_1").prompt("hello");
    const cancelled = run.cancel({ waitMs: 1000 });
    (await house.server.next(BY_KEY)).json(200, { ...STOPPING, runId: "run_1" });
    const wait = await house.server.next(BY_ID);
    expect(wait.body).toEqual({ waitMs: 1000 });
    wait.json(200, { ...STOPPING, first: false, ended: { kind: "settled", outcome: COMPLETED } });
    expect(await cancelled).toMatchObject({ ...STOPPING, ended: { kind: "settled", outcome: COMPLETED } });
  });
});

test("close() rejects what is waited for: acceptance, outcome, events, a cancel", async () => {
  await using house = await connected();
  const run = house.client.session("ses_1").prompt("hello");
  const done = house.client.run("run_2");
  (await house.server.next("GET /v1/runs/run_2")).json(200, {
    id: "run_2",
    session: "ses_1",
    phase: "live",
    acceptedAt: 2,
  });
  const other = await done;
  const pending = [run.accepted, run.outcome, run.text(), run.cancel(), other.outcome, other.text(), other.cancel()];
  await until(() => house.server.heard.length >= 6);
  await house.client.close();
  for (const one of pending) await expect(one).rejects.toMatchObject({ code: "disconnected" });
  expect(house.clock.pending).toEqual([]);
});
