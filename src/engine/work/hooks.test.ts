// Which hooks are called, and the effect of one that fails.
import { describe, expect, test } from "vitest";
import {
  accept,
  call,
  cancelCall,
  cancelRun,
  close,
  running,
  settleCall,
  settleTurn,
  user,
} from "../../../test/fixtures/commands.ts";
import type { Event, Recorded } from "../../core/model/event.ts";
import type { CallRequest } from "../../ports/agent.ts";
import type { HookedCall, Hooks, Notice } from "../../ports/hooks.ts";
import { systemClock } from "../../system/system-clock.ts";
import { given } from "../../testing/given.ts";
import { manualClock, settled } from "../../testing/manual-clock.ts";
import { SessionState } from "../log/session-state.ts";
import { HookRunner } from "./hooks.ts";
import { LiveCall } from "./live-call.ts";
import type { WorkHost } from "./run-work.ts";

function runner(hooks: Hooks) {
  const clock = manualClock();
  const notices: Notice[] = [];
  return { clock, notices, hooks: new HookRunner(hooks, clock, (notice) => notices.push(notice)) };
}

/** A session with an event of every kind that has a hook. */
const past = given(
  ...[...running("run_a"), call("call_a.1", "build"), call("call_a.2", "test"), cancelCall("call_a.1")],
  ...[settleCall("call_a.1", { outcome: { kind: "cancelled", reason: user } }), settleCall("call_a.2", { result: 7 })],
  ...[cancelRun("run_a"), settleTurn("turn_a.1"), close()],
);
const numbered = (events: readonly Event[]): readonly Recorded[] =>
  events.map((event, index): Recorded => ({ ...event, seq: index + 1, at: 0 }));
const log = numbered(past.events);

/** A lane with these live calls. */
function laneWith(...calls: readonly (readonly [`call_${string}`, name: string])[]): SessionState {
  const lane = new SessionState("ses_1");
  const request: CallRequest = { name: "", input: null, execute: () => 1 };
  for (const [id, name] of calls)
    lane.works.push(new LiveCall({ clock: systemClock } as WorkHost, lane, id, name, request));
  return lane;
}
const lane = (): SessionState => laneWith(["call_a.1", "build"], ["call_a.2", "test"]);

const hookedCall = (sessionId: HookedCall["sessionId"] = "ses_1"): HookedCall => ({
  ...{ callId: "call_a.1", name: "build", input: null, runId: "run_a", sessionId },
  signal: new AbortController().signal,
});

describe("recorded events", () => {
  const sessionId = "ses_1";
  const runId = "run_a";
  const signal = expect.any(AbortSignal);
  const cancelled = { kind: "cancelled", reason: user };
  const called = { runId, sessionId, signal, input: null };
  test.each<readonly [hook: Exclude<keyof Hooks, "beforeCall">, told: readonly object[]]>([
    [
      "afterCall",
      [
        { ...called, callId: "call_a.1", name: "build", outcome: cancelled },
        { ...called, callId: "call_a.2", name: "test", outcome: { kind: "completed" }, result: 7 },
      ],
    ],
    [
      "onCancel",
      [
        { sessionId, runId, callId: "call_a.1", reason: user },
        { sessionId, runId, reason: user },
      ],
    ],
    ["onOutcome", [{ sessionId, runId, outcome: cancelled, turnId: "turn_a.1", text: "" }]],
    ["onSessionEnd", [{ sessionId, reason: { kind: "closed" } }]],
  ])("call the hook of a host that has only %s", async (hook, told) => {
    const heard: unknown[] = [];
    const { hooks, notices, clock } = runner({ [hook]: (fact: unknown) => void heard.push(fact) });
    hooks.recorded(lane(), log);
    await settled();
    expect(heard).toStrictEqual(told);
    expect(notices).toEqual([]);
    expect(clock.pending).toEqual([]);
  });

  test("call onCancel for a run that is withdrawn before it begins, and once for one that was running", async () => {
    const heard: unknown[] = [];
    const { hooks } = runner({
      onCancel: ({ runId: id }) => void heard.push(["onCancel", id]),
      onOutcome: ({ runId: id, key }) => void heard.push(["onOutcome", id, key]),
    });
    const waiting = given(...running("run_a"), accept("run_b", { key: "k" }), accept("run_c"));
    const { events } = waiting.and(cancelRun("run_b"), cancelRun("run_a"), settleTurn("turn_a.1"));
    hooks.recorded(lane(), numbered(events));
    await settled();
    expect(heard).toEqual([
      ["onCancel", "run_b"],
      ["onOutcome", "run_b", "k"],
      ["onCancel", "run_a"],
      ["onOutcome", "run_a", undefined],
    ]);
  });

  test("give onOutcome the last turn and its text", async () => {
    const heard: unknown[] = [];
    const { hooks } = runner({ onOutcome: (end) => void heard.push(end) });
    hooks.recorded(lane(), numbered(given(...running("run_a"), settleTurn("turn_a.1", { text: "42" })).events));
    await settled();
    expect(heard).toStrictEqual([{ sessionId, runId, outcome: { kind: "completed" }, turnId: "turn_a.1", text: "42" }]);
  });

  test("cost a host without hooks nothing, not even timers", () => {
    const { hooks, clock } = runner({});
    hooks.recorded(lane(), log);
    expect(clock.pending).toEqual([]);
  });

  test("of a call whose worker has vanished do not call afterCall", async () => {
    const heard: unknown[] = [];
    const { hooks, notices } = runner({ afterCall: (fact) => void heard.push(fact) });
    hooks.recorded(laneWith(["call_a.2", "test"]), log);
    await settled();
    expect(heard).toMatchObject([{ callId: "call_a.2" }]);
    expect(notices).toEqual([]);
  });

  test("call every hook, even if one throws and another hangs, and the operator gets notices of both", async () => {
    const heard: unknown[] = [];
    const { hooks, notices, clock } = runner({
      onCancel: () => {
        throw new Error("broken");
      },
      onOutcome: () => new Promise(() => {}),
      onSessionEnd: () => void heard.push("end"),
    });
    hooks.recorded(lane(), log);
    await clock.advance(4_999);
    expect(heard).toEqual(["end"]);
    const failed = { type: "hook", hook: "onCancel", session: "ses_1", message: "broken" };
    expect(notices).toEqual([failed, failed]);
    await clock.advance(1);
    expect(notices.slice(2)).toEqual([
      { type: "hook", hook: "onOutcome", session: "ses_1", message: "The hook onOutcome did not end within 5000 ms." },
    ]);
  });
});

describe("before a call", () => {
  test("calls wait for a hook only if there is one", async () => {
    expect(runner({ onCancel: () => {} }).hooks.beforeCalls).toBe(false);
    expect(runner({ beforeCall: () => {} }).hooks.beforeCalls).toBe(true);
    expect(await runner({}).hooks.before(hookedCall())).toBeUndefined();
  });

  test("the host's verdict is returned, and no timer is left", async () => {
    const { hooks, clock } = runner({ beforeCall: ({ sessionId }) => ({ kind: "deny", note: `not in ${sessionId}` }) });
    expect(await hooks.before(hookedCall("ses_7"))).toEqual({ kind: "deny", note: "not in ses_7" });
    expect(await runner({ beforeCall: () => {} }).hooks.before(hookedCall())).toBeUndefined();
    expect(clock.pending).toEqual([]);
  });

  test("a failing hook does not count as approval", async () => {
    const cause = new Error("broken");
    const { hooks, notices } = runner({ beforeCall: () => Promise.reject(cause) });
    await expect(hooks.before(hookedCall())).rejects.toMatchObject({
      ...{ code: "unavailable", cause },
      message: "It was not carried out: the host's hook before calls failed. broken",
    });
    expect(notices).toEqual([{ type: "hook", hook: "beforeCall", session: "ses_1", message: "broken" }]);
  });

  const ALLOWED =
    'It may return { kind: "deny", note }, { kind: "allow", input, approved } (`approved` is true or false), ' +
    "or undefined if it has no opinion.";
  test.each<readonly [what: string, given: unknown, shown: string]>([
    ["false", false, "false"],
    ["null", null, "null"],
    ["a number", 5, "5"],
    ["a word", "deny", '"deny"'],
    ["many words", "x".repeat(99), `"${"x".repeat(40)}"`],
    ["a list", [], "a list"],
    ["a large number", 10n, "a bigint"],
    ["a function", () => {}, "a function"],
    ["a verdict without its kind", { deny: true }, "{ deny }"],
    ["a kind that is written otherwise", { kind: "Deny", note: "no" }, '{ kind: "Deny", note }'],
    ["a kind that there is not", { kind: "reject" }, '{ kind: "reject" }'],
    ["a kind that is no word", { kind: {}, approved: undefined }, "{ kind: an object, approved: undefined }"],
    ["more than a verdict has", { kind: "allow", inputs: {} }, '{ kind: "allow", inputs }'],
    ["more than anybody reads", { ["k".repeat(300)]: 1 }, `{ ${"k".repeat(198)}`],
    ["a yes that is none", { kind: "allow", approved: "no" }, '{ kind: "allow", approved: "no" }'],
  ])("a hook that returns %s does not approve, and the error has the valid forms", async (_, given, shown) => {
    const { hooks, notices } = runner({ beforeCall: () => given as never });
    const message = `The hook beforeCall returned ${shown}, which is no verdict. ${ALLOWED}`;
    await expect(hooks.before(hookedCall())).rejects.toMatchObject({
      ...{ code: "unavailable", message: `It was not carried out: the host's hook before calls failed. ${message}` },
    });
    expect(notices).toEqual([{ type: "hook", hook: "beforeCall", session: "ses_1", message }]);
  });

  test("a denial without a note is a denial", async () => {
    const note = "It gives no reason.";
    for (const given of [{}, { note: undefined }, { note: " " }, { note: 5 }, { note: { toString: 1 } }]) {
      const { hooks, notices } = runner({ beforeCall: () => ({ kind: "deny", ...given }) as never });
      expect(await hooks.before(hookedCall())).toStrictEqual({ kind: "deny", note });
      expect(notices).toEqual([]);
    }
  });

  test("an approval is copied without unknown fields", async () => {
    const allowed = { kind: "allow", input: { n: [1] }, approved: false } as const;
    const { hooks } = runner({ beforeCall: () => allowed });
    const verdict = await hooks.before(hookedCall());
    expect(verdict).toStrictEqual(allowed);
    expect(verdict).not.toBe(allowed);
    const bare = runner({ beforeCall: () => ({ kind: "allow", input: undefined, approved: undefined }) as never });
    expect(await bare.hooks.before(hookedCall())).toStrictEqual({ kind: "allow" });
  });

  test("an input that cannot be recorded does not count as approval", async () => {
    const { hooks, notices } = runner({ beforeCall: () => ({ kind: "allow", input: Number.NaN }) });
    const message = "The input that the hook beforeCall gave to build contains NaN, which JSON does not have.";
    await expect(hooks.before(hookedCall())).rejects.toMatchObject({
      ...{ code: "unavailable", message: `It was not carried out: the host's hook before calls failed. ${message}` },
    });
    expect(notices).toEqual([{ type: "hook", hook: "beforeCall", session: "ses_1", message }]);
  });

  test("a hook that hangs is awaited up to its limit, and keeps no program alive", async () => {
    const { hooks, clock } = runner({ beforeCall: () => new Promise(() => {}) });
    let said: unknown;
    hooks.before(hookedCall()).catch((error: unknown) => {
      said = error;
    });
    expect(clock.pending).toEqual([{ inMs: 5_000, idle: true }]);
    await clock.advance(4_999);
    expect(said).toBeUndefined();
    await clock.advance(1);
    expect(said).toMatchObject({ message: expect.stringContaining("The hook beforeCall did not end within 5000 ms.") });
  });
});
