// The calls of a run before its worker vanished: each result is used once, for the same call.
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

describe("G14: a repeated turn", () => {
  const made = (outcome: Outcome, result?: Json) => {
    const { events } = given(
      ...running("run_a"),
      asked("call_a.1", "build", { fast: true }),
      settleCall("call_a.1", { outcome, ...(result === undefined ? {} : { result }) }),
    );
    return readReplay(logStore(events).store, "ses_1", "turn_a.2", 0);
  };

  test("gets the result of a call with the same name and input, once", async () => {
    const replay = await made(completed, "built");
    expect(replay.take("test", { fast: true }, {})).toBeUndefined();
    expect(replay.take("build", { fast: false }, {})).toBeUndefined();
    expect(replay.take("build", { fast: true }, {})).toEqual({ kind: "completed", callId: "call_a.1", value: "built" });
    expect(replay.take("build", { fast: true }, {})).toBeUndefined();
  });

  test("gets the results of equal calls in the order in which they ended", async () => {
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
  ])("a call %s that is idempotent is %s", async (_, outcome, again) => {
    const repeated = (await made(outcome)).take("build", { fast: true }, { idempotent: true });
    expect(repeated?.kind).toBe(again === "answered" ? outcome.kind : undefined);
    // A call that is not idempotent is never begun again: its turn gets the known result.
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

  test("G25: a call that was cut off by every crash is begun again after the next", async () => {
    const replay = await history("turn_a.3", build("call_a.1"), recover(), build("call_a.2"), recover());
    expect(replay.take("build", null, repeatable)).toBeUndefined();
    expect(replay.take("build", null, {})).toBeUndefined();
    const told = await history("turn_a.3", build("call_a.1"), recover(), build("call_a.2"), recover());
    expect(told.take("build", null, {})).toMatchObject({ kind: "lost", callId: "call_a.2" });
  });

  test("a call that was begun again takes the place of the one cut off, among equal calls", async () => {
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

  test("a call that is not idempotent was a new one, and replaces none", async () => {
    const first = [asked("call_a.1", "roll", null), recover(), asked("call_a.2", "roll", null)];
    const replay = await history("turn_a.3", ...first, settleCall("call_a.2", { result: 6 }), recover());
    expect(replay.take("roll", null, {})).toMatchObject({ kind: "lost", callId: "call_a.1" });
    expect(replay.take("roll", null, {})).toMatchObject({ kind: "completed", callId: "call_a.2" });
  });

  const looks = [asked("call_a.1", "look", null), settleCall("call_a.1", { result: "not yet" })];
  const goesOn = settleTurn("turn_a.1", { next: "turn" });

  test("gets no result of an equal call of an earlier turn, but that of its earlier attempt", async () => {
    const later = [asked("call_a.2", "look", null), settleCall("call_a.2", { result: "ready" }), recover()];
    const replay = await history("turn_a.3", ...looks, goesOn, ...later);
    expect(replay.take("look", null, {})).toMatchObject({ value: "ready" });
    expect(replay.take("look", null, {})).toBeUndefined();
  });

  test("gets no result of calls in between, which its last attempt had requested at its end", async () => {
    const atEnd = [settleAsking("turn_a.1", { callId: "call_a.1", name: "look", input: null }), settleCall("call_a.1")];
    const replay = await history("turn_a.3", ...atEnd, recover());
    expect(replay.take("look", null, {})).toBeUndefined();
  });

  test("a turn after a repeated turn replays nothing", async () => {
    const replay = await history("turn_a.3", ...looks, recover(), settleTurn("turn_a.2", { next: "turn" }));
    expect(replay.take("look", null, {})).toBeUndefined();
  });

  test("a turn that was never begun replays nothing, although a call requested before it was cut off", async () => {
    const asking = settleAsking("turn_a.1", { callId: "call_a.2", name: "write", input: null });
    const replay = await history("turn_a.2", ...looks, asking, recover());
    expect(replay.take("look", null, {})).toBeUndefined();
  });

  test("gets nothing from a run before it, even if crashes ended that run", async () => {
    const { events } = given(
      ...[...running("run_z"), asked("call_z.1", "build", null), settleCall("call_z.1")],
      ...[recover(), recover(), recover()],
      ...[...running("run_a"), recover()],
    );
    expect(events.filter(({ type }) => type === "run.settled")).toMatchObject([{ runId: "run_z" }]);
    const replay = await readReplay(logStore(events).store, "ses_1", "turn_a.2", 0);
    expect(replay.take("build", null, {})).toBeUndefined();
  });

  test("gets no result of calls it has made since", async () => {
    const replay = await history("turn_a.2", recover(), ...looks);
    expect(replay.take("look", null, {})).toBeUndefined();
  });

  test("gets results only of calls of its run that have ended", async () => {
    const { events } = given(
      ...[...running("run_z"), asked("call_z.1", "build", null), settleCall("call_z.1"), settleTurn("turn_z.1")],
      ...[...running("run_a"), asked("call_a.1", "test", null), cancelCall("call_a.1")],
    );
    const replay = await readReplay(logStore(events).store, "ses_1", "turn_a.2", 0);
    expect(replay.take("build", null, {})).toBeUndefined();
    expect(replay.take("test", null, {})).toBeUndefined();
  });
});

describe("a call as it was requested", () => {
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

  test("is not searched beyond the end of its run, nor found where it is not", async () => {
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
