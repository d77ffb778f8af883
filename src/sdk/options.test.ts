// Options: mistakes are named, and have no effect.
import { expect, test } from "vitest";
import { logOf, openTestBelay } from "../../test/fixtures/belay.ts";
import type { LiveCall, Turn } from "../ports/agent.ts";
import { MemoryStore } from "../store/memory/memory-store.ts";
import { systemClock } from "../system/system-clock.ts";
import { type Belay, openBelay } from "./belay.ts";
import type { Session } from "./session.ts";

type Ask = (belay: Belay, session: Session, wild: never) => unknown;

const ASKS: Readonly<Record<string, Ask>> = {
  "createSession()": (belay, _, wild) => belay.createSession(wild),
  "sessions()": (belay, _, wild) => belay.sessions(wild),
  "belay.prompt()": (belay, _, wild) => belay.prompt("x", wild),
  "session.prompt()": (_, session, wild) => session.prompt("x", wild),
  "cancel() of a run": (belay, _, wild) => belay.cancel("run_1", wild),
  "cancel() of a session": (_, session, wild) => session.cancel(wild),
  "cancelAll()": (belay, _, wild) => belay.cancelAll(wild),
  "cancelPrompt()": (_, session, wild) => session.cancelPrompt("k", wild),
  "live()": (belay, _, wild) => belay.live(wild),
  "events() of all": (belay, _, wild) => belay.events(wild),
  "events()": (_, session, wild) => session.events(wild).next(),
  "runs()": (_, session, wild) => session.runs(wild),
  "post()": (_, session, wild) => session.post({ text: "x" } as never, wild),
  "setMode()": (_, session, wild) => session.setMode("x", wild),
  "queue.edit()": (_, session, wild) => session.queue.edit("run_1", "x", wild),
  "queue.move()": (_, session, wild) => session.queue.move("run_1", "front", wild),
  "queue.withdraw()": (_, session, wild) => session.queue.withdraw("run_1", wild),
  "queue.clear()": (_, session, wild) => session.queue.clear(wild),
  "queue.steer()": (_, session, wild) => session.queue.steer("run_1", wild),
  "questions.allow()": (belay, _, wild) => belay.questions.allow("ask_1", wild),
  "questions.deny()": (belay, _, wild) => belay.questions.deny("ask_1", wild),
  "questions.answer()": (belay, _, wild) => belay.questions.answer("ask_1", 1, wild),
  "processes.history()": (_, session, wild) => session.processes.history(wild),
  "session.close()": (_, session, wild) => session.close(wild),
  "belay.close()": (belay, _, wild) => belay.close(wild),
};

test.each(Object.keys(ASKS))(
  "G3: %s with invalid options is refused with a message, and leaves no trace",
  async (name) => {
    const { belay } = await openTestBelay();
    const session = await belay.createSession();
    const before = await logOf(session);
    for (const wild of [null, "enough", 5, ["x"]]) {
      const asked = async (): Promise<unknown> => ASKS[name]?.(belay, session, wild as never);
      await expect(asked(), String(wild)).rejects.toMatchObject({
        code: "invalid",
        message: expect.stringContaining("() takes its options as an object, { name: value }."),
      });
    }
    expect(await logOf(session)).toEqual(before);
    await belay.close();
  },
);

test.each(Object.keys(ASKS))("G3: %s refuses an unknown option", async (name) => {
  const { belay } = await openTestBelay();
  const session = await belay.createSession();
  const before = await logOf(session);
  const asked = async (): Promise<unknown> => ASKS[name]?.(belay, session, { aproval: true } as never);
  await expect(asked()).rejects.toMatchObject({
    code: "invalid",
    message: expect.stringMatching(/has no `aproval`/),
  });
  expect(await logOf(session)).toEqual(before);
  await belay.close();
});

type Inside = (turn: Turn, call: LiveCall, wild: never) => unknown;

const INSIDE: Readonly<Record<string, Inside>> = {
  "turn.call()": (turn, _, wild) => turn.call("x", {}, () => 1, wild),
  "turn.ask()": (turn, _, wild) => turn.ask({ text: "x", ...(wild as object) }),
  "turn.processes.start()": (turn, _, wild) => turn.processes.start("x", wild),
  "call.ask()": (_, call, wild) => call.ask({ text: "x", ...(wild as object) }),
  "call.processes.run()": (_, call, wild) => call.processes.run("x", wild),
  "call.processes.start()": (_, call, wild) => call.processes.start("x", wild),
};

test.each(Object.keys(INSIDE))("G3: %s refuses an unknown option", async (name) => {
  const refusals: unknown[] = [];
  const act = async (turn: Turn): Promise<string> => {
    await turn.call("outer", {}, async (call) => {
      const asked = async (): Promise<unknown> => INSIDE[name]?.(turn, call, { aproval: true } as never);
      await asked().catch((error: unknown) => refusals.push(error));
      return null;
    });
    return "done";
  };
  const { belay } = await openTestBelay({ go: act });
  await (await belay.createSession()).prompt("go").outcome;
  expect(refusals).toMatchObject([{ code: "invalid", message: expect.stringMatching(/has no `aproval`/) }]);
  await belay.close();
});

test("a misspelt approval of a call is refused with a suggestion, and the tool does not run", async () => {
  const begun: string[] = [];
  const wild = { aproval: true } as object;
  const { belay } = await openTestBelay({
    call: async (turn) => (await turn.call("rm", {}, () => void begun.push("rm"), wild)).kind,
  });
  const session = await belay.createSession();
  expect(await session.prompt("call").outcome).toMatchObject({
    kind: "failed",
    message: "A call has no `aproval`. Did you mean `approval`?",
  });
  expect(begun).toEqual([]);
  const agent = () => ({ calls: [{ name: "rm", input: {}, execute: () => void begun.push("rm"), ...wild }] });
  const other = await openTestBelay({}, { agent: agent as never });
  expect(await (await other.belay.createSession()).prompt("calls").outcome).toMatchObject({
    kind: "failed",
    message: "A call has no `aproval`. Did you mean `approval`?",
  });
  expect(begun).toEqual([]);
  await Promise.all([belay.close(), other.belay.close()]);
});

const WRONG: Readonly<Record<string, Ask>> = {
  "a session without an id": (belay) => belay.session(undefined as never),
  "a run without an id": (belay) => belay.run(undefined as never),
  "a cancel of everything, of which nothing is going on, with an unknown option": (belay) =>
    belay.cancelAll({ foo: 1 } as never),
  "a cancel of everything, of which nothing is going on, for a number": (belay) =>
    belay.cancelAll({ reason: 5 } as never),
  "events with deltas of another kind": (_, session) => session.events({ deltas: "yes" } as never).next(),
  "events until a number aborts": (_, session) => session.events({ signal: 5 } as never).next(),
};

test.each(Object.keys(WRONG))("G3: %s is refused with a message", async (name) => {
  const { belay } = await openTestBelay();
  const session = await belay.createSession();
  await expect((async () => WRONG[name]?.(belay, session, undefined as never))()).rejects.toMatchObject({
    code: "invalid",
  });
  await belay.close();
});

test("a store that lacks methods is refused, and the error names them", async () => {
  const store = new MemoryStore({ clock: systemClock });
  const agent = (): string => "done";
  await expect(openBelay({ agent, store: {} as never })).rejects.toMatchObject({ code: "invalid" });
  const lacking = Object.assign(Object.create(store), { trim: undefined, close: undefined });
  const message = "`store` is not a store: it lacks `trim()`, `close()`.";
  await expect(openBelay({ agent, store: lacking })).rejects.toMatchObject({ code: "invalid", message });
});
