// Work that this worker has not requested: left by an earlier worker, or recorded without an answer.
import { describe, expect, test } from "vitest";
import { gate } from "../../../test/fixtures/belay.ts";
import { watch } from "../../../test/fixtures/commit.ts";
import {
  asked as askedFor,
  eventsOf,
  live,
  neighbour,
  type TestEngine,
  testEngine,
} from "../../../test/fixtures/engine.ts";
import { verify } from "../../core/read/verify.ts";
import type { Agent, CallRequest, LiveCall, Turn } from "../../ports/agent.ts";
import type { Hooks } from "../../ports/hooks.ts";
import { Gate } from "../../testing/gate.ts";
import { settled } from "../../testing/manual-clock.ts";

const never = (): Promise<undefined> => new Promise(() => {});
const request = (name: string): CallRequest => ({ name, input: null, execute: never, idempotent: true });

/** Calls that a turn requested at its end, whose worker is gone; and the worker that recovers them. */
async function takenUp(
  resume: Agent["resume"],
  names = ["first", "second"],
): Promise<TestEngine & { readonly turns: Turn[] }> {
  const house = testEngine();
  const { sessionId, turn } = await live(house);
  turn.complete({ calls: names.map(request) });
  await settled();
  await house.log.release(sessionId, house.engine.worker);
  const turns: Turn[] = [];
  const agent: Agent = Object.assign(
    (begun: Turn) => {
      turns.push(begun);
      return never();
    },
    resume === undefined ? {} : { resume },
  );
  const next = neighbour(house, { agent });
  await next.engine.start();
  await settled();
  return { ...next, turns };
}

test.each([[["first"]], [["first", "second"]]])("G24: an earlier worker's calls are begun again: %j", async (names) => {
  const begun: LiveCall[] = [];
  const execute = (call: LiveCall) => {
    begun.push(call);
    return never();
  };
  const house = await takenUp(({ name, input }) => ({ ...request(name), input, execute }), names);
  expect(begun.map(({ name }) => name)).toEqual(names);
  for (const { callId } of begun) await house.engine.cancel.call(callId, { reason: { kind: "user" }, remind: false });
  // They do not stop, and are abandoned.
  await house.clock.advance(1_000);
  const ends = (await eventsOf(house, "ses_1")).filter(({ type }) => type === "call.settled");
  expect(ends).toMatchObject(names.map((name) => ({ outcome: { abandoned: [name] } })));
  expect(house.turns).toHaveLength(1);
});

test.each<readonly [string, Agent["resume"]]>([
  ["takes nothing up", undefined],
  ["does not know them", () => undefined],
])("G24: calls fail, and the run continues, if the agent %s", async (_, resume) => {
  const house = await takenUp(resume);
  const ends = (await eventsOf(house, "ses_1")).filter(({ type }) => type === "call.settled");
  const message = "It cannot be executed any more: the agent does not know this call.";
  const outcome = { kind: "failed", code: "unavailable", message };
  expect(ends).toMatchObject([{ outcome }, { outcome }]);
  expect(house.turns).toHaveLength(1);
});

test.each(["first", "next"])(
  "G28: in the %s worker, a call that was recorded although its caller got an error fails unbegun",
  async (life) => {
    const first = testEngine();
    const { sessionId, turn: asked } = await live(first);
    let [house, turn] = [first, asked];
    if (life === "next") {
      await first.log.release(sessionId, first.engine.worker);
      house = neighbour(first);
      await house.engine.start();
      turn = await house.agent.nextTurn();
    }
    house.store.plan("append", 1, { kind: "lose-answer" });
    const call = turn.call("write");
    const result = watch(call.result);
    await house.clock.advance(1_000);
    expect(result).toMatchObject({ is: "refused", value: { code: "unavailable" } });
    expect(call.hasBegun).toBe(false);
    const message = "It was never begun: the store did not say in time that it was recorded.";
    expect((await eventsOf(house, sessionId)).at(-1)).toMatchObject({
      ...{ type: "call.settled", outcome: { kind: "failed", code: "unavailable", message } },
    });
    turn.complete();
    await settled();
    expect((await eventsOf(house, sessionId)).at(-1)).toMatchObject({ type: "run.settled" });
    await house.engine.prompt(sessionId, askedFor("next")).accepted;
    expect((await house.agent.nextTurn()).given.prompt).toEqual({ text: "next" });
  },
);

describe("a call whose approval an earlier worker has requested, and which begins without the answer", () => {
  const asking: CallRequest = { name: "write", input: null, execute: never, approval: true };
  const approving: Hooks = { beforeCall: () => ({ kind: "allow", approved: true }) };
  const other: Hooks = { beforeCall: () => ({ kind: "allow", approved: true, input: { changed: true } }) };

  /** The next worker of a run that is cut off while its call waits for an approval. */
  async function waiting(): Promise<TestEngine> {
    const house = testEngine();
    const { turn } = await live(house);
    turn.complete({ calls: [asking] });
    await settled();
    expect((await eventsOf(house, "ses_1")).at(-1)).toMatchObject({ type: "question.asked" });
    return house;
  }

  const nextLife = async (
    before: TestEngine,
    request: CallRequest,
    hooks: Hooks = {},
    begun: string[] = [],
  ): Promise<TestEngine> => {
    await before.log.release("ses_1", before.engine.worker);
    const execute = (): Promise<undefined> => {
      begun.push(request.name);
      return never();
    };
    const agent: Agent = Object.assign(never, { resume: () => ({ ...request, execute }) });
    const house = neighbour(before, { agent, hooks });
    await house.engine.start();
    await settled();
    return house;
  };

  test.each<readonly [string, CallRequest, Hooks]>([
    ["a hook approves it", asking, approving],
    ["a hook approves it with another input", asking, other],
    ["it needs no approval any more", { ...asking, approval: false }, {}],
    ["nothing asks about it any more", { name: "write", input: null, execute: never }, {}],
  ])("G25: is not begun again after the next crash: %s", async (_, request, hooks) => {
    const begun: string[] = [];
    const second = await nextLife(await waiting(), request, hooks, begun);
    expect(begun).toEqual(["write"]);
    const ending = { kind: "withdrawn", reason: { kind: "parent", id: "call_1.1" } };
    expect((await eventsOf(second, "ses_1")).at(-1)).toMatchObject({ type: "question.settled", ending });
    const third = await nextLife(second, request, hooks, begun);
    expect(begun).toEqual(["write"]);
    const log = await eventsOf(third, "ses_1");
    expect(log.filter(({ type }) => type === "call.settled")).toMatchObject([{ outcome: { kind: "lost" } }]);
    expect(verify(log)).toEqual([]);
  });

  test("G25: does not begin before the withdrawal of its approval is durable", async () => {
    const first = await waiting();
    await first.log.release("ses_1", first.engine.worker);
    const begun: string[] = [];
    const thinking = gate();
    const hooks: Hooks = { beforeCall: () => thinking.passed.then(() => ({ kind: "allow", approved: true })) };
    const execute = (): void => void begun.push("write");
    const agent: Agent = Object.assign(never, { resume: () => ({ ...asking, execute }) });
    const house = neighbour(first, { agent, hooks });
    await house.engine.start();
    await settled();
    house.store.plan("append", 1, { kind: "delay", until: new Gate() });
    thinking.open();
    await settled();
    expect(begun).toEqual([]);
  });

  test("does not begin if it is denied while a hook runs, whatever the hook returns then", async () => {
    const first = await waiting();
    const begun: string[] = [];
    const thinking = gate();
    const house = await nextLife(
      first,
      asking,
      { beforeCall: () => thinking.passed.then(() => ({ kind: "allow", approved: true })) },
      begun,
    );
    const receipt = await house.engine.questions.answer("ask_1.1", { kind: "denied" }, {});
    expect(receipt).toMatchObject({ kind: "recorded" });
    thinking.open();
    await settled();
    expect(begun).toEqual([]);
    const ends = (await eventsOf(house, "ses_1")).filter(({ type }) => type === "call.settled");
    expect(ends).toMatchObject([{ outcome: { kind: "failed", code: "denied" } }]);
  });
});
