// What a run did before its worker vanished: each answer is given once, to the same call.
import { describe, expect, test } from "vitest";
import {
  call,
  cancelCall,
  cancelledBy,
  completed,
  failed,
  lost,
  recover,
  running,
  settleAsking,
  settleCall,
  settleTurn,
} from "../../../test/fixtures/commands.ts";
import { logStore } from "../../../test/fixtures/log-store.ts";
import { PAGE_EVENTS_MAX } from "../../core/limits.ts";
import type { Outcome } from "../../core/model/cancel.ts";
import type { Command } from "../../core/model/command.ts";
import type { Event } from "../../core/model/event.ts";
import type { CallId, TurnId } from "../../core/model/ids.ts";
import type { Json } from "../../core/model/prompt.ts";
import { given } from "../../testing/given.ts";
import { readAll, readCall, readReplay } from "./replay.ts";

const asked = (callId: CallId, name: string, input: Json) => ({ ...call(callId, name), input }) as const;

describe("G14: a turn that is asked again", () => {
  const made = (outcome: Outcome, result?: Json) => {
    const { events } = given(
      ...running("run_a"),
      asked("call_a.1", "build", { fast: true }),
      settleCall("call_a.1", { outcome, ...(result === undefined ? {} : { result }) }),
    );
    return readReplay(logStore(events).store, "ses_1", "turn_a.2", 0);
  };

  test("is told how a call of the same name and input ended, once", async () => {
    const replay = await made(completed, "built");
    expect(replay.take("test", { fast: true }, {})).toBeUndefined();
    expect(replay.take("build", { fast: false }, {})).toBeUndefined();
    expect(replay.take("build", { fast: true }, {})).toEqual({ kind: "completed", callId: "call_a.1", value: "built" });
    expect(replay.take("build", { fast: true }, {})).toBeUndefined();
  });

  test("is told of calls that are the same in the order in which they ended", async () => {
    const { events } = given(
      ...running("run_a"),
      ...[asked("call_a.1", "roll", null), asked("call_a.2", "roll", null)],
      ...[settleCall("call_a.2", { result: "second" }), settleCall("call_a.1", { result: "first" })],
    );
    const replay = await readReplay(logStore(events).store, "ses_1", "turn_a.2", 0);
    expect(replay.take("roll", null, {})).toMatchObject({ value: "second" });
    expect(replay.take("roll", null, {})).toMatchObject({ value: "first" });
  });

  const shutdown = cancelledBy({ kind: "shutdown" });
  test.each<readonly [how: string, outcome: Outcome, again: "begun again" | "answered"]>([
    ["whose end nobody knows", lost, "begun again"],
    ["that a shutdown stopped", shutdown, "begun again"],
    ["that somebody stopped", cancelledBy({ kind: "user" }), "answered"],
    ["that failed", failed, "answered"],
    ["that completed", completed, "answered"],
  ])("a call %s that may be repeated is %s", async (_, outcome, again) => {
    const repeated = (await made(outcome)).take("build", { fast: true }, { idempotent: true });
    expect(repeated?.kind).toBe(again === "answered" ? outcome.kind : undefined);
    // One that may not be repeated never is: its turn is told what is known.
    for (const options of [{}, { idempotent: false }]) {
      expect((await made(outcome)).take("build", { fast: true }, options)?.kind).toBe(outcome.kind);
    }
  });

  const build = (callId: CallId) => ({ ...asked(callId, "build", null), idempotent: true }) as const;
  const repeatable = { idempotent: true };
  const history = (turnId: TurnId, ...commands: readonly Command[]) =>
    readReplay(logStore(given(...running("run_a"), ...commands).events).store, "ses_1", turnId, 0);

  test("G25: a call that ended when it was begun again is not begun a third time after the next crash", async () => {
    const again = [build("call_a.1"), recover(), build("call_a.2"), settleCall("call_a.2", { result: "built" })];
    const replay = await history("turn_a.3", ...again, recover());
    expect(replay.take("build", null, repeatable)).toMatchObject({ callId: "call_a.2", value: "built" });
    expect(replay.take("build", null, repeatable)).toBeUndefined();
  });

  test("G25: a call that was cut off in every life is begun in the next", async () => {
    const replay = await history("turn_a.3", build("call_a.1"), recover(), build("call_a.2"), recover());
    expect(replay.take("build", null, repeatable)).toBeUndefined();
    expect(replay.take("build", null, {})).toBeUndefined();
    const told = await history("turn_a.3", build("call_a.1"), recover(), build("call_a.2"), recover());
    expect(told.take("build", null, {})).toMatchObject({ kind: "lost", callId: "call_a.2" });
  });

  test("what was begun again stands where it was cut off, among others that are the same", async () => {
    const first = [
      build("call_a.1"),
      build("call_a.2"),
      build("call_a.3"),
      settleCall("call_a.3", { result: "third" }),
    ];
    const second = [recover(), build("call_a.4"), settleCall("call_a.4", { result: "first again" }), recover()];
    const replay = await history("turn_a.3", ...first, ...second);
    const taken = [1, 2, 3, 4].map(() => replay.take("build", null, {})?.callId);
    expect(taken).toEqual(["call_a.3", "call_a.4", "call_a.2", undefined]);
  });

  test("one that may not be repeated was a new one, and cuts nothing out", async () => {
    const first = [asked("call_a.1", "roll", null), recover(), asked("call_a.2", "roll", null)];
    const replay = await history("turn_a.3", ...first, settleCall("call_a.2", { result: 6 }), recover());
    expect(replay.take("roll", null, {})).toMatchObject({ kind: "lost", callId: "call_a.1" });
    expect(replay.take("roll", null, {})).toMatchObject({ kind: "completed", callId: "call_a.2" });
  });

  const looks = [asked("call_a.1", "look", null), settleCall("call_a.1", { result: "not yet" })];
  const goesOn = settleTurn("turn_a.1", { next: "turn" });

  test("is not told what the same call has found in an earlier turn, but what it found in this one", async () => {
    const later = [asked("call_a.2", "look", null), settleCall("call_a.2", { result: "ready" }), recover()];
    const replay = await history("turn_a.3", ...looks, goesOn, ...later);
    expect(replay.take("look", null, {})).toMatchObject({ value: "ready" });
    expect(replay.take("look", null, {})).toBeUndefined();
  });

  test("is not told what was found in between, by calls that its last turn had asked for at its end", async () => {
    const atEnd = [settleAsking("turn_a.1", { callId: "call_a.1", name: "look", input: null }), settleCall("call_a.1")];
    const replay = await history("turn_a.3", ...atEnd, recover());
    expect(replay.take("look", null, {})).toBeUndefined();
  });

  test("a turn after one that was asked again looks for itself", async () => {
    const replay = await history("turn_a.3", ...looks, recover(), settleTurn("turn_a.2", { next: "turn" }));
    expect(replay.take("look", null, {})).toBeUndefined();
  });

  test("a turn that was never begun looks for itself, although a call asked for before it was cut off", async () => {
    const asking = settleAsking("turn_a.1", { callId: "call_a.2", name: "write", input: null });
    const replay = await history("turn_a.2", ...looks, asking, recover());
    expect(replay.take("look", null, {})).toBeUndefined();
  });

  test("hears nothing of a run before it, also if that has ended by its crashes", async () => {
    const { events } = given(
      ...[...running("run_z"), asked("call_z.1", "build", null), settleCall("call_z.1")],
      ...[recover(), recover(), recover()],
      ...[...running("run_a"), recover()],
    );
    expect(events.filter(({ type }) => type === "run.settled")).toMatchObject([{ runId: "run_z" }]);
    const replay = await readReplay(logStore(events).store, "ses_1", "turn_a.2", 0);
    expect(replay.take("build", null, {})).toBeUndefined();
  });

  test("is not answered by what it has done itself", async () => {
    const replay = await history("turn_a.2", recover(), ...looks);
    expect(replay.take("look", null, {})).toBeUndefined();
  });

  test("hears of its own run's calls only, and of those that have ended", async () => {
    const { events } = given(
      ...[...running("run_z"), asked("call_z.1", "build", null), settleCall("call_z.1"), settleTurn("turn_z.1")],
      ...[...running("run_a"), asked("call_a.1", "test", null), cancelCall("call_a.1")],
    );
    const replay = await readReplay(logStore(events).store, "ses_1", "turn_a.2", 0);
    expect(replay.take("build", null, {})).toBeUndefined();
    expect(replay.take("test", null, {})).toBeUndefined();
  });
});

describe("a call as it was asked for", () => {
  const past = given(
    ...[...running("run_z"), asked("call_z.1", "old", 0), settleCall("call_z.1"), settleTurn("turn_z.1")],
    ...[...running("run_a"), asked("call_a.1", "build", { fast: true }), asked("call_a.2", "test", null)],
  );

  test("is found in the log", async () => {
    const { store } = logStore(past.events);
    expect(await readCall(store, "ses_1", "call_a.1", 0)).toEqual({
      ...{ callId: "call_a.1", name: "build", input: { fast: true } },
    });
    expect(await readCall(store, "ses_1", "call_a.2", 0)).toMatchObject({ name: "test" });
    expect(await readCall(store, "ses_1", "call_z.1", 0)).toMatchObject({ name: "old" });
  });

  test("is not looked for behind the end of its run, nor found where it is not", async () => {
    const more = Array.from(
      { length: 3 * PAGE_EVENTS_MAX },
      (): Event => ({
        ...{ type: "turn.extended", runId: "run_a", turnId: "turn_a.1", text: "x" },
      }),
    );
    const { store, reads } = logStore([...past.events, ...more]);
    expect(await readCall(store, "ses_1", "call_z.9", 0)).toBeUndefined();
    expect(reads).toEqual([0]);
    expect(await readCall(store, "ses_1", "call_a.9", 0)).toBeUndefined();
  });
});

test("a log is read from a position to its end, page by page, each event once", async () => {
  const events = Array.from(
    { length: 2 * PAGE_EVENTS_MAX + 1 },
    (): Event => ({ type: "run.started", runId: "run_a" }),
  );
  const seen: number[] = [];
  for await (const { seq } of readAll(logStore(events).store, "ses_1", 3)) seen.push(seq);
  expect(seen).toEqual(Array.from({ length: events.length - 3 }, (_, index) => index + 4));
});
