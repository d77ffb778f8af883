// Waiting for answers: which waiter gets which answer, the deadlines, and late answers.
import { describe, expect, test } from "vitest";
import { gate } from "../../../test/fixtures/belay.ts";
import { approval, cancelRequested, questionSettled } from "../../../test/fixtures/commands.ts";
import { QUESTION_MS, QUESTIONS_OPEN_MAX, STORE_WAIT_MS } from "../../core/limits.ts";
import type { QuestionId } from "../../core/model/ids.ts";
import type { QuestionRequest, QuestionResult, Turn } from "../../ports/agent.ts";
import { MemoryStore } from "../../store/memory/memory-store.ts";
import { type FaultyStore, faultyStore } from "../../testing/faulty-store.ts";
import { Gate } from "../../testing/gate.ts";
import { manualClock, settled } from "../../testing/manual-clock.ts";
import { sequentialIds } from "../../testing/sequential-ids.ts";
import { Engine } from "../engine.ts";

const clockOf = (engine: Engine) => engine.clock as ReturnType<typeof manualClock>;
const stores = new WeakMap<Engine, FaultyStore>();

function storeOf(engine: Engine): FaultyStore {
  const store = stores.get(engine);
  if (store === undefined) throw new Error("This engine was not made by house().");
  return store;
}

function house(agent: (turn: Turn) => Promise<undefined>): Engine {
  const clock = manualClock();
  const store = faultyStore(new MemoryStore({ clock }));
  const engine = new Engine({
    ...{ store, clock, ids: sequentialIds(), agent, hooks: {}, notify: () => {} },
    ...{ graceMs: 1_000, liveRunsMax: 9, resume: "resume", runLimitMs: undefined, tap: undefined, spawner: undefined },
  });
  stores.set(engine, store);
  return engine;
}

/** A run whose turn asks this, does some more work, and waits for the answer. */
async function asking(
  question: Partial<QuestionRequest> = {},
  besides: (turn: Turn, engine: Engine) => unknown = () => {},
) {
  const heard = Promise.withResolvers<QuestionResult>();
  const ended = gate();
  const engine: Engine = house(async (turn) => {
    turn.ask({ text: "Which?", ...question }).then(heard.resolve, heard.reject);
    await besides(turn, engine);
    await heard.promise.catch(() => {});
    await ended.passed;
    return undefined;
  });
  heard.promise.catch(() => {});
  await engine.start();
  const { id: session } = await engine.create(undefined, {});
  const { runId, accepted } = engine.prompt(session, asked("ask"));
  await accepted;
  await settled();
  const id: QuestionId = `ask_${runId.slice(4)}.1`;
  const end = async (): Promise<void> => {
    ended.open();
    await engine.outcome(runId);
  };
  return { engine, clock: clockOf(engine), session, runId, id, heard: heard.promise, end };
}

const yes = { kind: "answered", value: "yes" } as const;
const note = (text: string) => ({ kind: "user", note: text }) as const;

const asked = (text: string) => ({ prompt: { text }, delivery: "queue", key: undefined }) as const;

test("K10: a question whose run was cancelled leaves no waiter", async () => {
  const engine = house(async (turn) => void (await turn.ask({ text: "Which?", options: ["this", "that"] })));
  await engine.start();
  const { id } = await engine.create(undefined, {});
  const { runId, accepted } = engine.prompt(id, asked("ask"));
  await accepted;
  await settled();
  expect(engine.ends.waiters.size).toBe(1);
  await engine.cancel.run(runId, { kind: "user" });
  await settled();
  expect(await engine.outcome(runId)).toMatchObject({ kind: "cancelled" });
  expect(engine.ends.waiters.size).toBe(0);
});

describe("work that asks a question", () => {
  test("gets the answer, and no waiter or timer is left", async () => {
    const { engine, clock, id, heard } = await asking({ deadlineMs: 77_777 });
    expect(clock.pending.map(({ inMs }) => inMs)).toContain(77_777);
    expect(await engine.questions.answer(id, yes, {})).toEqual({ kind: "recorded", questionId: id });
    expect(await heard).toEqual(yes);
    expect(engine.ends.waiters.size).toBe(0);
    expect(clock.pending.map(({ inMs }) => inMs)).not.toContain(77_777);
  });

  test("gets an answer that is recorded together with the question", async () => {
    const { engine, heard, clock } = await asking({ deadlineMs: 77_777 }, (turn, of) => {
      void of.ask(turn.sessionId, { type: "answer", questionId: `ask_${turn.runId.slice(4)}.1`, reply: yes });
    });
    expect(await heard).toEqual(yes);
    expect(engine.ends.waiters.size).toBe(0);
    expect(clock.pending.map(({ inMs }) => inMs)).not.toContain(77_777);
  });

  test("gets such an answer even if another question was asked in the same tick", async () => {
    const second = Promise.withResolvers<QuestionResult>();
    await asking({}, (turn, of) => {
      turn.ask({ text: "And this?" }).then(second.resolve, second.reject);
      void of.ask(turn.sessionId, { type: "answer", questionId: `ask_${turn.runId.slice(4)}.2`, reply: yes });
    });
    expect(await second.promise).toEqual(yes);
  });

  test("gets `allowed` for a granted scope, and no question is asked", async () => {
    const { engine, runId } = await asking();
    const lane = engine.lanes.get(engine.lanes.sessionOf(runId) ?? "ses_none");
    const [turn] = lane.works;
    if (turn === undefined) throw new Error("There is no turn.");
    const ask = () =>
      engine.questions.ask(lane, turn.scope, { owner: turn.id, about: approval(), deadlineMs: undefined });
    const first = ask();
    await settled();
    const reply = { kind: "allowed", remember: "session" } as const;
    await engine.questions.answer(`ask_${runId.slice(4)}.2`, reply, {});
    expect(await first).toEqual(reply);
    expect(await ask()).toEqual({ kind: "allowed" });
  });

  test("gets `expired` after an hour, or after its own deadline", async () => {
    for (const [deadlineMs, limitMs] of [
      [undefined, QUESTION_MS],
      [60_000, 60_000],
    ] as const) {
      const { engine, clock, heard, id } = await asking(deadlineMs === undefined ? {} : { deadlineMs });
      await clock.advance(limitMs - 1);
      expect(engine.ends.waiters.size).toBe(1);
      await clock.advance(1);
      expect(await heard).toEqual({ kind: "expired", limitMs });
      expect(await engine.questions.answer(id, yes, {})).toEqual({
        kind: "settled",
        ending: { kind: "expired", limitMs },
      });
    }
  });

  test("is refused if too many questions are open, with the reason", async () => {
    const refusals: unknown[] = [];
    const { runId } = await asking({}, (turn) => {
      for (let open = 1; open < QUESTIONS_OPEN_MAX; open += 1) void turn.ask({ text: `Number ${open}?` });
      turn.ask({ text: "One more?" }).catch((error: unknown) => refusals.push(error));
    });
    await settled();
    const message = `${QUESTIONS_OPEN_MAX} questions of ${runId} are open; that is the limit.`;
    expect(refusals).toEqual([expect.objectContaining({ code: "queue_full", message })]);
  });

  test("gets an AbortError if it is stopped before its question is durable, and no waiter is left", async () => {
    const { engine, heard } = await asking({}, ({ runId }, of) => {
      const stalled = new Gate();
      storeOf(of).always("append", { kind: "delay", until: stalled });
      setImmediate(() => {
        void of.cancel.run(runId, { kind: "user" });
        storeOf(of).heal();
        stalled.open();
      });
    });
    await settled();
    await expect(heard).rejects.toMatchObject({ name: "AbortError" });
    await settled();
    expect(engine.ends.waiters.size).toBe(0);
  });

  test.each(["store_full", "unavailable"] as const)(
    "G28: is rejected if the question cannot be recorded (%s), and no waiter is left",
    async (code) => {
      const { engine, heard, clock } = await asking({ deadlineMs: 77_777 }, (_, of) =>
        storeOf(of).plan("append", 1, { kind: "fail", code }),
      );
      await expect(heard).rejects.toMatchObject({ code });
      expect(engine.ends.waiters.size).toBe(0);
      await clock.advance(1_000);
      expect(engine.ends.waiters.size).toBe(0);
      expect(clock.pending.map(({ inMs }) => inMs)).not.toContain(76_777);
    },
  );

  test.each(["answers later", "never answers"])(
    "G28: is rejected after 5 s without an answer of the store, and no waiter is left (it %s)",
    async (how) => {
      const late = new Gate();
      const { engine, heard, clock } = await asking({}, (_, of) =>
        storeOf(of).plan("append", 1, { kind: "delay", until: late }),
      );
      await clock.advance(STORE_WAIT_MS);
      await expect(heard).rejects.toMatchObject({ code: "unavailable" });
      if (how === "answers later") late.open();
      await clock.advance(STORE_WAIT_MS);
      expect(engine.ends.waiters.size).toBe(0);
    },
  );
});

test("leaves nothing if a question ends without a waiter", async () => {
  const { engine, runId } = await asking();
  const before = engine.ends.waiters.size;
  const endings = Array.from({ length: 1_000 }, (_, index) => ({
    ...questionSettled(`ask_z.${index + 1}`, { kind: "expired", limitMs: 1 }),
    ...{ seq: index + 1, at: 0 },
  }));
  engine.ends.waiters.recorded([{ ...cancelRequested(runId), seq: 1, at: 0 }, ...endings]);
  expect(engine.ends.waiters.size).toBe(before);
});

describe("a late answer", () => {
  const outcomes: readonly (readonly [
    string,
    (one: Awaited<ReturnType<typeof asking>>) => Promise<unknown>,
    object,
    object,
  ])[] = [
    ["answered", ({ engine, id }) => engine.questions.answer(id, yes, {}), yes, { kind: "completed" }],
    [
      "expired",
      ({ clock }) => clock.advance(QUESTION_MS),
      { kind: "expired", limitMs: QUESTION_MS },
      { kind: "cancelled", reason: { kind: "timeout", limitMs: QUESTION_MS } },
    ],
    [
      "taken back",
      ({ engine, id }) =>
        engine.questions.cancel({ type: "cancel-question", questionId: id, reason: note("mine") }, undefined),
      { kind: "withdrawn", reason: note("mine") },
      { kind: "cancelled", reason: note("mine") },
    ],
  ];
  test.each(outcomes)("gets the recorded ending (%s), even when its run has ended", async (_, how, ending, outcome) => {
    const one = await asking();
    await how(one);
    const { engine, id } = one;
    const cancel = () =>
      engine.questions.cancel({ type: "cancel-question", questionId: id, reason: note("late") }, undefined);
    const none: QuestionId = `ask_${one.runId.slice(4)}.9`;
    for (const wait of [async () => {}, one.end]) {
      await wait();
      expect(await engine.questions.answer(id, yes, {})).toEqual({ kind: "settled", ending });
      expect(await cancel()).toEqual({ kind: "settled", outcome });
      expect(await engine.questions.answer(none, yes, {})).toEqual({ kind: "unknown" });
      expect(
        await engine.questions.cancel({ type: "cancel-question", questionId: none, reason: note("x") }, undefined),
      ).toEqual({ kind: "unknown" });
    }
  });

  test("to a question that was never asked is answered `unknown`", async () => {
    const { engine } = await asking();
    // Of a run that is refused in this tick.
    const { runId, accepted } = engine.prompt("ses_none", asked("nowhere"));
    accepted.catch(() => {});
    expect(await engine.questions.answer(`ask_${runId.slice(4)}.1`, yes, {})).toEqual({ kind: "unknown" });
    const questionId = "ask_none.1";
    expect(await engine.questions.answer(questionId, yes, {})).toEqual({ kind: "unknown" });
    expect(
      await engine.questions.cancel({ type: "cancel-question", questionId, reason: note("x") }, undefined),
    ).toEqual({ kind: "unknown" });
  });

  test("gets the recorded ending even for a run that has waited for another", async () => {
    const { engine, session, id, end } = await asking();
    const { runId, accepted } = engine.prompt(session, asked("behind"));
    await accepted;
    await engine.questions.answer(id, yes, {});
    await end();
    // It asks, and ends without waiting for the answer.
    await engine.outcome(runId);
    expect(await engine.questions.answer(`ask_${runId.slice(4)}.1`, yes, {})).toMatchObject({
      ...{ kind: "settled", ending: { kind: "withdrawn" } },
    });
  });

  test("G2: that is repeated with its key gets the same receipt", async () => {
    const { engine, id, heard } = await asking();
    const first = await engine.questions.answer(id, yes, { key: "k" });
    expect(await heard).toEqual(yes);
    expect(await engine.questions.answer(id, yes, { key: "k" })).toEqual(first);
    const other = { kind: "answered", value: "no" } as const;
    await expect(engine.questions.answer(id, other, { key: "k" })).rejects.toMatchObject({ code: "conflict" });
  });
});
