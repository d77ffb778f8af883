import { Writable } from "node:stream";
import { describe, expect, test } from "vitest";
import { InMemoryHost, openBridge } from "../../../test/fixtures/bridge-host.ts";
import type { BelayControl } from "../../ports/control.ts";
import { openBelay } from "../../sdk/belay.ts";
import { MemoryStore } from "../../store/memory/memory-store.ts";
import { Gate } from "../../testing/gate.ts";
import { manualClock, settled } from "../../testing/manual-clock.ts";
import { scriptedAgent } from "../../testing/scripted-agent.ts";
import { HANGUP_MS, HELD_BYTES_MAX, LINES_OPEN_MAX, REQUESTS_OPEN_MAX } from "./limits.ts";

/** A store that outlives the bridge, as a file would. */
function lastingStore(): MemoryStore {
  const store = new MemoryStore({ clock: manualClock() });
  store.close = async () => {};
  return store;
}

/** A host that does not read: output is held until it does. */
class DeafOutput extends Writable {
  readonly #reads = new Gate();
  readonly taken: string[] = [];

  constructor() {
    super({ decodeStrings: false });
  }

  override _write(piece: string, _: string, done: (error?: Error) => void): void {
    void this.#reads.opened.then(() => {
      this.taken.push(piece);
      done();
    });
  }

  read(): void {
    this.#reads.open();
  }
}

describe("shutdown", () => {
  test("parks live runs by default, answers all requests, and ends the bridge", async () => {
    const store = lastingStore();
    const { host, agent } = await openBridge({ store });
    const sessionId = await host.newSession();
    host.send({ id: 1, method: "session/prompt", params: { sessionId, prompt: "go" } });
    const turn = await agent.nextTurn();
    void turn.cancelled.then(() => turn.endCancelled());
    host.send(
      { id: 2, method: "shutdown" },
      { id: 3, method: "session/prompt", params: { sessionId, prompt: "more" } },
    );
    await host.over;
    expect((await host.answer(1)).error).toMatchObject({ data: { code: "shutting_down", retryable: true } });
    expect((await host.answer(2)).result).toEqual({ unfinished: [] });
    expect((await host.answer(3)).error).toMatchObject({ data: { code: "shutting_down" } });
    await using next = await openBelay({ store, agent: () => "taken up" });
    const [row] = await next.session(sessionId).runs();
    expect(await (await next.run(row?.id ?? "")).outcome).toEqual({ kind: "completed" });
  });

  test("cancels live runs with mode `cancel`", async () => {
    const { host, agent } = await openBridge();
    const sessionId = await host.newSession();
    host.send({ id: 1, method: "session/prompt", params: { sessionId, prompt: "go" } });
    const turn = await agent.nextTurn();
    void turn.cancelled.then(() => turn.endCancelled());
    host.send({ id: 2, method: "shutdown", params: { mode: "cancel" } });
    await host.over;
    expect((await host.answer(1)).result).toMatchObject({
      outcome: { kind: "cancelled", reason: { kind: "shutdown" } },
    });
  });

  test("a cancel still works during shutdown", async () => {
    const closes = new Gate();
    const { host, belay } = await openBridge({}, { close: () => closes.opened });
    const sessionId = await host.newSession();
    host.send({ id: 1, method: "shutdown" }, { id: 2, method: "session/cancel", params: { sessionId } });
    expect((await host.answer(2)).result).toMatchObject({ status: "idle" });
    closes.open();
    await host.over;
    await belay.close();
  });
});

describe("a host that is gone", () => {
  test("F10: its runs are cancelled, with the reason, and open requests are answered", async () => {
    const { host, agent } = await openBridge();
    const sessionId = await host.newSession();
    host.send({ id: 1, method: "session/prompt", params: { sessionId, prompt: "go" } });
    host.send({ id: 2, method: "session/prompt", params: { sessionId, prompt: "then" } });
    const turn = await agent.nextTurn();
    void turn.cancelled.then(() => turn.endCancelled());
    host.input.end();
    await host.over;
    const gone = { kind: "cancelled", reason: { kind: "policy", note: expect.stringContaining("is gone") } };
    expect((await host.answer(1)).result).toMatchObject({ outcome: gone });
    expect((await host.answer(2)).result).toMatchObject({ outcome: gone });
    expect(agent.turns).toHaveLength(1);
  });

  test("its runs are parked, if that is the policy", async () => {
    const store = lastingStore();
    const { host, agent } = await openBridge({ store }, { onHangup: "park" });
    const sessionId = await host.newSession();
    host.send({ id: 1, method: "session/prompt", params: { sessionId, prompt: "go" } });
    const turn = await agent.nextTurn();
    void turn.cancelled.then(() => turn.endCancelled());
    host.input.end();
    await host.over;
    await using next = await openBelay({ store, agent: () => "taken up" });
    const [row] = await next.session(sessionId).runs();
    expect(await (await next.run(row?.id ?? "")).outcome).toEqual({ kind: "completed" });
  });

  test("a last line without a line break is handled, and a truncated one is not", async () => {
    const { host, agent } = await openBridge({}, { onHangup: "park" });
    const sessionId = await host.newSession();
    host.send({ id: 1, method: "session/prompt", params: { sessionId, prompt: "go" } });
    const turn = await agent.nextTurn();
    void turn.cancelled.then(() => turn.endCancelled());
    host.input.end(JSON.stringify({ method: "session/cancel", params: { sessionId } }));
    await host.over;
    expect((await host.answer(1)).result).toMatchObject({ outcome: { kind: "cancelled", reason: { kind: "user" } } });
  });

  test("F10: a broken pipe ends the bridge once, although every write fails", {
    meta: { id: "bridge/broken-pipe-ends-once" },
  }, async () => {
    let writes = 0;
    const output = new Writable({
      write(_piece, _encoding, done) {
        writes += 1;
        done(Object.assign(new Error("broken pipe"), { code: "EPIPE" }));
      },
    });
    const agent = scriptedAgent();
    const belay = await openBelay({ store: ":memory:", agent });
    const session = await belay.createSession();
    const host = new InMemoryHost({ control: belay, output, close: (mode) => belay.close({ mode }) });
    host.send({ id: 1, method: "session/subscribe", params: { sessionId: session.id } });
    host.send({ id: 2, method: "session/prompt", params: { sessionId: session.id, prompt: "go" } });
    await host.over;
    expect(writes).toBe(1);
    expect(belay.load.live).toBe(0);
  });

  test("the wait for a run that does not end is bounded", async () => {
    const clock = manualClock();
    const control = { ...stub(), close: () => new Promise<never>(() => {}) };
    const host = new InMemoryHost({ control, clock });
    host.input.end();
    await settled();
    await clock.advance(HANGUP_MS);
    await host.over;
  });
});

/** Receives only what the test writes. */
const stub = (): BelayControl => ({}) as BelayControl;

describe("a host that does not read", () => {
  test("F13: events stay in the log, little is held, and a cancel still takes effect", {
    meta: { id: "G31/bridge-unread-output-bounded" },
  }, async () => {
    const output = new DeafOutput();
    const { host, agent, belay } = await openBridge({}, { output });
    const session = await belay.createSession();
    const sessionId = session.id;
    host.send(
      { id: 1, method: "session/subscribe", params: { sessionId } },
      { id: 2, method: "session/prompt", params: { sessionId, prompt: "go" } },
    );
    const turn = await agent.nextTurn();
    const big = "x".repeat(64 * 1024);
    for (let index = 0; index < 80; index += 1) await turn.call("fill", null, () => big).result;
    const line = big.length + 1024;
    expect(output.writableLength).toBeGreaterThan(HELD_BYTES_MAX - line);
    expect(output.writableLength).toBeLessThan(HELD_BYTES_MAX + line);
    host.send({ method: "session/cancel", params: { sessionId } });
    await turn.cancelled;
    turn.endCancelled();
    const [row] = await session.runs();
    expect(await (await belay.run(row?.id ?? "")).outcome).toMatchObject({ kind: "cancelled" });
    output.read();
    const taken = (): string => output.taken.join("");
    while (!taken().includes('"id":2,"result"')) await settled();
    host.input.end();
    await host.over;
    const told = taken()
      .split("\n")
      .filter((one) => one.includes('"method":"event"'))
      .map((one) => (JSON.parse(one) as { params: { event: { seq: number } } }).params.event.seq);
    expect(told).toEqual(Array.from({ length: told.length }, (_, index) => index + 1));
    expect(told.length).toBeGreaterThan(160);
    expect(taken().indexOf('"id":2,"result"')).toBeGreaterThan(taken().indexOf("run.settled"));
  });

  test("the input is paused when too many lines wait for answers, and resumed when the host reads", async () => {
    const output = new DeafOutput();
    const { host } = await openBridge({}, { output });
    const filler = "y".repeat(250);
    // Each is answered with an error; the first answers fill the output buffer.
    const lines = LINES_OPEN_MAX * 4;
    for (let index = 0; index < lines; index += 1) host.send({ id: `${filler}${index}`, method: "no/such" });
    await settled();
    await settled();
    expect(host.input.isPaused()).toBe(true);
    expect(output.writableLength).toBeLessThan(HELD_BYTES_MAX + 1024);
    output.read();
    host.send({ id: "last", method: "ping" });
    host.input.end();
    await host.over;
    const ids = output.taken.join("").match(/"id":"y+\d+"/g) ?? [];
    expect(new Set(ids).size).toBe(lines);
  });
});

test("prompts beyond the limit of open requests are refused, a cancel is not", async () => {
  const waiting = new Promise<never>(() => {});
  const run = { sessionId: "ses_x", accepted: waiting, outcome: waiting };
  const session = { id: "ses_x", prompt: () => run, cancel: async () => ({ kind: "idle", runs: [] }) };
  const control = { session: () => session, close: async () => {} } as unknown as BelayControl;
  const host = new InMemoryHost({ control });
  const params = { sessionId: "ses_x", prompt: "go" };
  for (let index = 0; index <= REQUESTS_OPEN_MAX; index += 1)
    host.send({ id: index, method: "session/prompt", params });
  expect((await host.answer(REQUESTS_OPEN_MAX)).error).toMatchObject({ data: { code: "overloaded", retryable: true } });
  expect((await host.ask("session/cancel", { sessionId: "ses_x" })).result).toMatchObject({ status: "idle" });
  expect(host.lines).toHaveLength(2);
});

describe("the audit log", () => {
  test("every change leaves one record, even if it is refused; a read leaves none", async () => {
    const clock = manualClock(1_000);
    const { host, agent } = await openBridge({ clock });
    const sessionId = await host.newSession();
    host.send({ id: 1, method: "session/prompt", params: { sessionId, prompt: "go" } });
    const turn = await agent.nextTurn();
    await host.ask("session/explain", { sessionId });
    host.send({ method: "session/cancel", params: { sessionId } });
    await turn.cancelled;
    turn.endCancelled();
    await host.answer(1);
    await host.ask("session/prompt", { sessionId: "ses_none", prompt: "go" });
    await host.ask("session/cancel_tool_call", { sessionId, toolCallId: "call_none.1" });
    expect(host.records).toMatchObject([
      { action: "session/new", answer: "created", target: sessionId, actor: "bridge", via: "bridge", at: 1_000 },
      { action: "session/prompt", answer: "accepted", target: turn.given.runId },
      { action: "session/cancel", answer: "cancelled", target: sessionId },
      { action: "session/prompt", answer: "refused", code: "not_found", target: "ses_none" },
      { action: "session/cancel_tool_call", answer: "not_found", target: "call_none.1" },
    ]);
    expect(new Set(host.records.map((record) => record.id)).size).toBe(5);
  });

  test("a failed write is reported to the operator, and delays nothing", async () => {
    const audit = { note: () => Promise.reject(new Error("disk full")) };
    const { host } = await openBridge({}, { audit });
    expect(await host.newSession()).toMatch(/^ses_/);
    host.input.end();
    await host.over;
    expect(host.notices.join()).toContain("disk full");
  });

  test("the loss of the host and the reaction to it are recorded", async () => {
    const { host } = await openBridge({}, { onHangup: "park" });
    host.input.end();
    await host.over;
    expect(host.records).toMatchObject([{ action: "hangup", answer: "park" }]);
  });
});
