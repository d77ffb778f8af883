import { realpathSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { InMemoryHost, openBridge } from "../../../test/fixtures/bridge-host.ts";
import type { BelayControl } from "../../ports/control.ts";
import { Gate } from "../../testing/gate.ts";
import { settled } from "../../testing/manual-clock.ts";

describe("lines", () => {
  test("initialize names the protocol, the version and every method", async () => {
    const { host } = await openBridge({}, { version: "1.2.3" });
    const { result } = await host.ask("initialize", { client: { name: "an editor" } });
    expect(result).toMatchObject({ protocol: 1, version: "1.2.3" });
    expect(JSON.stringify(result)).toContain("session/cancel_tool_call");
    expect((await host.ask("ping")).result).toEqual({});
  });

  test("a line that is not JSON is answered with -32700, and the next line is read", async () => {
    const { host } = await openBridge();
    host.input.write("{ not json\n");
    expect(await host.answer(null)).toMatchObject({ error: { code: -32700 } });
    expect((await host.ask("ping")).result).toEqual({});
  });

  test("a line that is not UTF-8 is refused", async () => {
    const { host } = await openBridge();
    host.input.write(Buffer.from([0x22, 0xff, 0x22, 0x0a]));
    expect(await host.answer(null)).toMatchObject({ error: { code: -32700 } });
  });

  test.each([
    ["[]", -32600],
    ["7", -32600],
    ['{"id":1}', -32600],
    ['{"jsonrpc":"1.0","method":"ping"}', -32600],
    ['{"id":null,"method":"ping"}', -32600],
    ['{"id":{},"method":"ping"}', -32600],
    ['{"id":1e999,"method":"ping"}', -32600],
    ['{"id":1,"method":"ping","params":[1]}', -32602],
  ])("%s is not a request: %i", async (line, code) => {
    const { host } = await openBridge();
    host.input.write(`${line}\n`);
    expect((await host.line((one) => one.error !== undefined)).error?.code).toBe(code);
  });

  test("an unknown method is answered with -32601 and a suggestion", {
    meta: { id: "bridge/unknown-method-suggestion" },
  }, async () => {
    const { host } = await openBridge();
    const { error } = await host.ask("session/promt", {});
    expect(error).toMatchObject({ code: -32601, data: { hint: "Did you mean `session/prompt`?" } });
  });

  test("an unknown field is refused by name, with a suggestion", {
    meta: { id: "bridge/unknown-field-named" },
  }, async () => {
    const { host } = await openBridge();
    const { error } = await host.ask("session/new", { titel: "x" });
    expect(error).toMatchObject({ code: -32602, message: "session/new has no `titel`." });
    expect(error?.data).toMatchObject({ code: "invalid", hint: "Did you mean `title`?", retryable: false });
  });

  test("a session gets its directory, and a forbidden one is refused", async () => {
    const { host, belay } = await openBridge();
    const cwd = realpathSync(process.cwd());
    const { result } = await host.ask("session/new", { cwd });
    expect(await belay.sessions()).toMatchObject([{ ...(result === undefined ? {} : { id: result.sessionId }), cwd }]);
    expect((await host.ask("session/new", { cwd: "/" })).error).toMatchObject({ data: { code: "forbidden" } });
    expect(await belay.sessions()).toHaveLength(1);
  });

  test("answers of the host, empty lines and unknown notifications are ignored", async () => {
    const { host } = await openBridge();
    host.input.write('{"jsonrpc":"2.0","id":5,"result":{}}\n\n  \n{"jsonrpc":"2.0","method":"no/such"}\n');
    await host.ask("ping");
    expect(host.lines).toHaveLength(1);
  });

  test("a line may come byte by byte, with characters of several bytes and U+2028 inside", async () => {
    const { host, agent } = await openBridge();
    const sessionId = await host.newSession();
    const prompt = "höher 🧗 \u2028 weiter";
    const line = JSON.stringify({ id: 1, method: "session/prompt", params: { sessionId, prompt } });
    for (const byte of Buffer.from(`${line}\r\n`)) host.input.write(Buffer.from([byte]));
    const turn = await agent.nextTurn();
    expect(turn.given.prompt.text).toBe(prompt);
    turn.complete(prompt);
    expect((await host.answer(1)).result).toMatchObject({ text: prompt });
  });

  test("a line beyond the limit is reported once and ignored, whatever its length", {
    meta: { id: "bridge/overlong-line-skipped" },
  }, async () => {
    const { host } = await openBridge();
    const mebibyte = "x".repeat(1024 * 1024);
    for (let piece = 0; piece < 5; piece += 1) host.input.write(mebibyte);
    host.input.write("\n");
    expect(await host.answer(null)).toMatchObject({ error: { code: -32600 } });
    await host.ask("ping");
    expect(host.lines).toHaveLength(2);
  });
});

describe("prompts", () => {
  test("a prompt is notified when it is accepted, and answered with its outcome", async () => {
    const { host, agent } = await openBridge();
    const sessionId = await host.newSession();
    host.send({ id: 7, method: "session/prompt", params: { sessionId, prompt: "go" } });
    const { params } = await host.told("run/accepted");
    expect(params).toMatchObject({ sessionId, joined: "queue", ahead: 0, requestId: 7 });
    const turn = await agent.nextTurn();
    expect(host.lines.some((line) => line.id === 7)).toBe(false);
    turn.say("there");
    turn.complete();
    const { result } = await host.answer(7);
    expect(result).toEqual({ runId: params?.runId, outcome: { kind: "completed" }, text: "there" });
  });

  test("F12: a subscriber receives the end before the answer, however slow it reads", {
    meta: { id: "bridge/end-event-before-answer" },
  }, async () => {
    const end = new Gate();
    const event = (seq: number, type: string) => ({ seq, at: 0, type, runId: "run_x" });
    const run = {
      sessionId: "ses_x",
      accepted: Promise.resolve({ runId: "run_x", seq: 1, joined: "queue", ahead: 0 }),
      outcome: Promise.resolve({ kind: "completed" }),
      row: async () => ({ settledAt: 2 }),
      text: async () => "said",
    };
    const session = {
      id: "ses_x",
      explain: async () => ({ asOf: 0 }),
      prompt: () => run,
      async *events() {
        yield event(1, "run.accepted");
        await end.opened;
        yield event(2, "run.settled");
        await new Promise(() => {});
      },
    };
    const host = new InMemoryHost({ control: { session: () => session } as unknown as BelayControl });
    await host.ask("session/subscribe", { sessionId: "ses_x" });
    host.send({ id: 1, method: "session/prompt", params: { sessionId: "ses_x", prompt: "go" } });
    await host.event("run.accepted");
    await settled();
    expect(host.lines.some((line) => line.id === 1)).toBe(false);
    end.open();
    expect((await host.answer(1)).result).toMatchObject({ text: "said" });
    expect(host.lines.at(-2)?.params).toMatchObject({ event: { type: "run.settled" } });
  });

  test("deltas are sent on request", async () => {
    const { host, agent } = await openBridge();
    const sessionId = await host.newSession();
    await host.ask("session/subscribe", { sessionId, deltas: "with" });
    host.send({ id: 1, method: "session/prompt", params: { sessionId, prompt: "go" } });
    const turn = await agent.nextTurn();
    turn.say("word");
    expect(await host.event("delta")).toMatchObject({ text: "word" });
    turn.complete();
    await host.answer(1);
  });

  test("prompts of two sessions are answered in the order of their ends, not of their lines", async () => {
    const { host, agent } = await openBridge();
    const [one, other] = [await host.newSession(), await host.newSession()];
    host.send(
      { id: "one", method: "session/prompt", params: { sessionId: one, prompt: "one" } },
      { id: "other", method: "session/prompt", params: { sessionId: other, prompt: "other" } },
    );
    const turns = [await agent.nextTurn(), await agent.nextTurn()];
    turns.find((turn) => turn.given.prompt.text === "other")?.complete("first");
    expect((await host.answer("other")).result).toMatchObject({ text: "first" });
    turns.find((turn) => turn.given.prompt.text === "one")?.complete("second");
    expect((await host.answer("one")).result).toMatchObject({ text: "second" });
  });

  test("G3: a refused prompt is an error with its code, and nothing was accepted", async () => {
    const { host } = await openBridge();
    const { error } = await host.ask("session/prompt", { sessionId: "ses_none", prompt: "go" });
    expect(error).toMatchObject({ code: -32004, data: { code: "not_found", retryable: false } });
    expect((await host.ask("session/prompt", { sessionId: "ses_none", prompt: 5 })).error?.code).toBe(-32602);
    expect((await host.ask("session/prompt", { prompt: "x" })).error?.code).toBe(-32602);
    expect(host.lines.some((line) => line.method === "run/accepted")).toBe(false);
  });

  test("G2: a repeated key returns the same run", async () => {
    const { host, agent } = await openBridge();
    const sessionId = await host.newSession();
    const params = { sessionId, prompt: "once", key: "k" };
    host.send({ id: 1, method: "session/prompt", params }, { id: 2, method: "session/prompt", params });
    (await agent.nextTurn()).complete("done");
    const [first, second] = [await host.answer(1), await host.answer(2)];
    expect(second.result).toEqual(first.result);
    expect(agent.turns).toHaveLength(1);
  });
});

describe("other methods", () => {
  test("the queue is listed, edited, moved, steered and withdrawn from", async () => {
    const { host, agent } = await openBridge();
    const sessionId = await host.newSession();
    const send = (id: number, prompt: string): void =>
      host.send({ id, method: "session/prompt", params: { sessionId, prompt } });
    send(1, "live");
    const live = await agent.nextTurn();
    for (const [id, prompt] of [
      [2, "a"],
      [3, "b"],
      [4, "c"],
    ] as const)
      send(id, prompt);
    const runs = await Promise.all(
      [2, 3, 4].map(async (id) => (await host.told("run/accepted", (one) => one.requestId === id)).params?.runId),
    );
    expect((await host.ask("queue/edit", { sessionId, runId: runs[0], prompt: "A" })).result).toMatchObject({
      kind: "changed",
    });
    expect((await host.ask("queue/move", { sessionId, runId: runs[1], to: "front" })).result).toMatchObject({
      kind: "changed",
    });
    expect((await host.ask("queue/withdraw", { sessionId, runId: runs[2], reason: "not now" })).result).toMatchObject({
      kind: "changed",
    });
    expect((await host.ask("queue/list", { sessionId })).result).toMatchObject({
      queue: [{ prompt: { text: "b" } }, { prompt: { text: "A" } }],
    });
    expect((await host.ask("queue/steer", { sessionId, runId: runs[1] })).result).toMatchObject({ kind: "changed" });
    expect((await host.ask("queue/move", { sessionId, runId: runs[0], to: "up" })).error?.code).toBe(-32602);
    expect((await host.answer(4)).result).toMatchObject({
      outcome: { kind: "cancelled", reason: { note: "not now" } },
    });
    expect((await host.ask("session/explain", { sessionId })).result).toMatchObject({ busy: true });
    expect((await host.ask("session/set_mode", { sessionId })).error?.code).toBe(-32602);
    expect((await host.ask("session/set_mode", { sessionId, mode: "auto", by: "ann" })).result).toMatchObject({
      kind: "changed",
      mode: "auto",
    });
    await host.ask("session/cancel", { sessionId });
    live.endCancelled();
    expect((await host.answer(1)).result).toMatchObject({ outcome: { kind: "cancelled" } });
    const { result } = await host.ask("session/transcript", { sessionId });
    expect(result?.messages).toContainEqual(expect.objectContaining({ role: "user", text: "live" }));
  });

  test("an approval is bound to the displayed bytes", async () => {
    const { host, agent } = await openBridge();
    const sessionId = await host.newSession();
    await host.ask("session/subscribe", { sessionId });
    host.send({ id: 1, method: "session/prompt", params: { sessionId, prompt: "go" } });
    const turn = await agent.nextTurn();
    const call = turn.call("write", { path: "x" }, () => "written", { approval: true });
    const { questionId, about } = await host.event("question.asked");
    const { digest } = about as { digest: string };
    const allow = (more: object) => host.ask("question/answer", { questionId, kind: "allowed", ...more });
    expect((await allow({ digest: "other" })).error).toMatchObject({ data: { code: "conflict" } });
    expect((await allow({ value: 1 })).error?.code).toBe(-32602);
    expect((await allow({ digest })).result).toMatchObject({ kind: "recorded" });
    await call.result;
    turn.complete();
    expect((await host.answer(1)).result).toMatchObject({ outcome: { kind: "completed" } });
  });

  test("a second subscription replaces the first, and unsubscribing ends it", async () => {
    const { host, belay } = await openBridge();
    const sessionId = await host.newSession();
    expect((await host.ask("session/subscribe", { sessionId })).result).toEqual({
      sessionId,
      after: 0,
      deltas: "without",
    });
    await host.told("event");
    await host.ask("session/subscribe", { sessionId });
    await host.line(() => host.lines.filter((line) => line.method === "event").length === 2);
    expect((await host.ask("session/unsubscribe", { sessionId })).result).toMatchObject({ unsubscribed: true });
    expect((await host.ask("session/unsubscribe", { sessionId })).result).toMatchObject({ unsubscribed: false });
    await belay.session(sessionId).post({ kind: "reminder", text: "unheard" });
    await host.ask("ping");
    expect(host.lines.filter((line) => line.method === "event")).toHaveLength(2);
  });

  test("a position beyond the log and an unknown session are refused", async () => {
    const { host } = await openBridge();
    const sessionId = await host.newSession();
    expect((await host.ask("session/subscribe", { sessionId, after: 2 })).error?.code).toBe(-32602);
    expect((await host.ask("session/subscribe", { sessionId: "ses_none" })).error?.code).toBe(-32004);
    expect((await host.ask("session/unsubscribe", { sessionId })).result).toMatchObject({ unsubscribed: false });
  });
});
