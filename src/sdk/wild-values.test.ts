// Agents and tools can throw and return anything. None of it leaves a run that neither ends nor stops.
import { describe, expect, test } from "vitest";
import { logOf, openTestBelay } from "../../test/fixtures/belay.ts";
import { verifyAtRest } from "../core/read/verify.ts";
import type { Agent, Execute, LiveCall, Turn } from "../ports/agent.ts";
import type { Belay } from "./belay.ts";
import type { Session } from "./session.ts";

const refuses = (): never => {
  throw new Error("Nobody looks at me.");
};

/** An object that throws on every access. */
const touchy = (): object =>
  new Proxy(
    {},
    { get: refuses, has: refuses, ownKeys: refuses, getPrototypeOf: refuses, getOwnPropertyDescriptor: refuses },
  );

function circle(): object {
  const round: Record<string, unknown> = {};
  round.round = round;
  return round;
}

const THROWN: Readonly<Record<string, () => unknown>> = {
  nothing: () => undefined,
  null: () => null,
  "a symbol": () => Symbol("wild"),
  "a big number": () => 10n,
  "a function": () => refuses,
  "an object without a prototype": () => Object.create(null),
  "an object that cannot be made a text": () => ({ toString: refuses }),
  "an error whose message is no text": () => Object.assign(new Error("x"), { message: Object.create(null) }),
  "an error whose message cannot be read": () => Object.defineProperty(new Error("x"), "message", { get: refuses }),
  "an error whose code cannot be read": () => Object.defineProperty(new Error("x"), "code", { get: refuses }),
  "an error with half a character": () => new Error("\ud800"),
  "something that cannot be looked at": touchy,
};

/** None of these is JSON. */
const RETURNED: Readonly<Record<string, () => unknown>> = {
  "a symbol": () => Symbol("wild"),
  "a big number": () => 10n,
  "a circle": circle,
  "what cannot be made JSON": () => ({ toJSON: refuses }),
  "a field that cannot be read": () => Object.defineProperty({}, "text", { get: refuses, enumerable: true }),
  "something that cannot be looked at": touchy,
};

/** Shaped like a turn's result, but invalid. */
const RESULTS: Readonly<Record<string, () => unknown>> = {
  ...RETURNED,
  null: () => null,
  "a list": () => ["x"],
  "a cost in big numbers": () => ({ usage: { inputTokens: 1n, outputTokens: 1n, estimated: false } }),
  "parts in a circle": () => ({ parts: [circle()] }),
  "a call that is none": () => ({ calls: [null] }),
  "a call with an input that is no JSON": () => ({ calls: [{ name: "x", input: circle(), execute: () => 1 }] }),
  "a call with a note that is no JSON": () => ({
    calls: [{ name: "x", input: {}, provider: { id: "x", data: circle() }, execute: () => 1 }],
  }),
  "a call that is idempotent in its own way": () => ({
    calls: [{ name: "x", input: {}, interruptible: false, timeoutMs: 10n, execute: () => 1 }],
  }),
};

/** The first turn of a session does this, and the next one returns `done`. */
async function outcomeAfter(first: (turn: Turn) => unknown) {
  const agent = ((turn: Turn) => (turn.prompt.text === "wild" ? first(turn) : "done")) as Agent;
  const { belay } = await openTestBelay({}, { agent });
  const session = await belay.createSession();
  const outcome = await session.prompt("wild").outcome;
  // The session continues, and its log is valid.
  expect(await session.prompt("next").outcome).toEqual({ kind: "completed" });
  const log = await logOf(session);
  expect(verifyAtRest(log)).toEqual([]);
  await belay.close();
  return { outcome, log };
}

const failed = { kind: "failed", code: expect.any(String), message: expect.stringMatching(/./) };

describe("G12, G15: a turn fails, and its session continues, if it", () => {
  test.each(Object.keys(THROWN))("throws %s", async (name) => {
    const throws = (): never => {
      throw THROWN[name]?.();
    };
    expect((await outcomeAfter(throws)).outcome).toEqual(failed);
    expect((await outcomeAfter(async () => throws())).outcome).toEqual(failed);
  });

  test.each(Object.keys(RESULTS))("returns %s", async (name) => {
    expect((await outcomeAfter(() => RESULTS[name]?.())).outcome).toEqual(failed);
  });
});

describe("G12, G17: a call fails, its turn gets the error, and its run continues, if the tool", () => {
  const called = async (execute: () => unknown) => {
    const { outcome, log } = await outcomeAfter(async (turn) => {
      const result = await turn.call("wild", {}, execute as Execute);
      return result.kind;
    });
    expect(outcome).toEqual({ kind: "completed" });
    return log.find(({ type }) => type === "call.settled");
  };

  test.each(Object.keys(THROWN))("throws %s", async (name) => {
    const throws = (): never => {
      throw THROWN[name]?.();
    };
    expect(await called(throws)).toMatchObject({ outcome: failed });
    expect(await called(async () => throws())).toMatchObject({ outcome: failed });
  });

  test("returns a value that cannot be awaited", async () => {
    expect(await called(touchy)).toMatchObject({ outcome: failed });
  });

  test.each(Object.keys(RETURNED).filter((name) => RETURNED[name] !== touchy))(
    "G15: but a tool that returns %s completes, with what can be stored of it as its result",
    async (name) => {
      const settled = await called(() => RETURNED[name]?.());
      expect(settled).toMatchObject({ outcome: { kind: "completed" }, result: expect.anything() });
    },
  );
});

describe("G3, G12: a turn that passes a value that cannot be recorded gets an error, and its run ends:", () => {
  /** As a program without types would call it. */
  type Wild = (given: unknown) => unknown;
  const inTurn: Readonly<Record<string, (turn: Turn) => Wild>> = {
    "emit()": (turn) => turn.emit as Wild,
    "emit() of a kind": (turn) => ((kind) => turn.emit("x", kind as "text")) as Wild,
    "ask()": (turn) => turn.ask as Wild,
    "ask() with data": (turn) => ((data) => turn.ask({ text: "?", data: data as null })) as Wild,
    "ask() with options": (turn) => ((options) => turn.ask({ text: "?", options: options as [] })) as Wild,
    "compact()": (turn) => turn.compact as Wild,
    "call() of a name": (turn) => ((name) => turn.call(name as string, {}, () => 1)) as Wild,
    "call() with an input": (turn) => ((input) => turn.call("x", input as null, () => 1)) as Wild,
  };
  const inCall: Readonly<Record<string, (call: LiveCall) => Wild>> = {
    "partial()": (call) => call.partial as Wild,
    "progress()": (call) => call.progress as Wild,
    "changed()": (call) => call.changed as Wild,
    "ask() in a call": (call) => call.ask as Wild,
  };
  const refused = async (act: Wild, given: unknown): Promise<void> => {
    await expect((async () => act(given))()).rejects.toThrow();
  };

  test.each(Object.keys(inTurn))("%s", async (name) => {
    const { outcome } = await outcomeAfter(async (turn) => {
      for (const make of Object.values(RETURNED)) await refused(inTurn[name]?.(turn) ?? refuses, make());
      return "done";
    });
    expect(outcome).toEqual({ kind: "completed" });
  });

  test.each(Object.keys(inCall))("%s", async (name) => {
    const { outcome } = await outcomeAfter(async (turn) => {
      const { kind } = await turn.call("wild", {}, async (call) => {
        for (const make of Object.values(RETURNED)) await refused(inCall[name]?.(call) ?? refuses, make());
      });
      return kind;
    });
    expect(outcome).toEqual({ kind: "completed" });
  });

  test.each(Object.keys(RETURNED))("a usage object with %s", async (name) => {
    const { outcome, log } = await outcomeAfter((turn) => {
      turn.meter(() => RETURNED[name]?.() as object);
      throw new Error("after all");
    });
    expect(outcome).toMatchObject({ kind: "failed", message: "after all" });
    expect(log.find(({ type }) => type === "turn.settled")).not.toHaveProperty("usage");
  });

  test("only the counts of a turn's usage are kept", async () => {
    const usage = { inputTokens: 1, outputTokens: 2, estimated: circle(), more: circle() };
    const { outcome, log } = await outcomeAfter(() => ({ text: "x", usage }));
    expect(outcome).toEqual({ kind: "completed" });
    const counts = { inputTokens: 1, outputTokens: 2, estimated: false };
    expect(log.find(({ type }) => type === "turn.settled")).toMatchObject({ usage: counts });
  });
});

describe("G3: a request with a value that cannot be recorded is refused, and leaves no trace:", () => {
  type Ask = (belay: Belay, session: Session, wild: never) => Promise<unknown>;
  const asks: Readonly<Record<string, Ask>> = {
    "a title": (belay, _, wild) => belay.createSession({ title: wild }),
    "a prompt": (_, session, wild) => session.prompt(wild).accepted,
    "the text of a prompt": (_, session, wild) => session.prompt({ text: wild }).accepted,
    "the data of a prompt": (_, session, wild) => session.prompt({ text: "x", data: wild }).accepted,
    "a key": (_, session, wild) => session.prompt("x", { key: wild }).accepted,
    "a reason": (_, session, wild) => session.cancel({ reason: wild }),
    "the note of a reason": (_, session, wild) => session.cancel({ reason: { kind: "user", note: wild } }),
    "who has a reason": (_, session, wild) => session.cancel({ reason: { kind: "user", by: wild } }),
    "an item": (_, session, wild) => session.post(wild),
    "the text of an item": (_, session, wild) => session.post({ text: wild } as never),
    "a mode": (_, session, wild) => session.setMode(wild),
    "a queued run": (_, session, wild) => session.queue.edit("run_1", wild),
  };

  test.each(Object.keys(asks))("%s", async (name) => {
    const { belay } = await openTestBelay();
    const session = await belay.createSession();
    const before = await logOf(session);
    for (const [what, make] of Object.entries(RETURNED)) {
      const asked = async (): Promise<unknown> => asks[name]?.(belay, session, make() as never);
      // With our own message, or with that of the object that throws.
      await expect(asked(), what).rejects.toThrow();
    }
    expect(await logOf(session)).toEqual(before);
    await belay.close();
  });
});
