// What is handed over besides the thing itself: mistakes are named, and nothing comes of them.
import { expect, test } from "vitest";
import { logOf, openHouse } from "../../test/fixtures/belay.ts";
import type { Belay } from "./belay.ts";
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
  "queue.steer()": (_, session, wild) => session.queue.steer("run_1", wild),
  "questions.allow()": (belay, _, wild) => belay.questions.allow("ask_1", wild),
  "questions.deny()": (belay, _, wild) => belay.questions.deny("ask_1", wild),
  "questions.answer()": (belay, _, wild) => belay.questions.answer("ask_1", 1, wild),
  "processes.history()": (_, session, wild) => session.processes.history(wild),
  "session.close()": (_, session, wild) => session.close(wild),
  "belay.close()": (belay, _, wild) => belay.close(wild),
};

test.each(Object.keys(ASKS))(
  "G3: %s with options that are none is refused in words, and leaves no trace",
  async (name) => {
    const { belay } = await openHouse();
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

test.each(Object.keys(WRONG))("G3: %s is refused in words", async (name) => {
  const { belay } = await openHouse();
  const session = await belay.createSession();
  await expect((async () => WRONG[name]?.(belay, session, undefined as never))()).rejects.toMatchObject({
    code: "invalid",
  });
  await belay.close();
});
