// Start times of a live run and its calls, from the log.
import { expect, test } from "vitest";
import {
  accept,
  call,
  cancelCall,
  park,
  recover,
  running,
  settleCall,
  settleTurn,
  start,
} from "../../../test/fixtures/commands.ts";
import { logStore, timeAt } from "../../../test/fixtures/log-store.ts";
import { PAGE_EVENTS_MAX } from "../../core/limits.ts";
import type { Event } from "../../core/model/event.ts";
import { type CallId, type RunId, turnId } from "../../core/model/ids.ts";
import { type Given, given } from "../../testing/given.ts";
import { SessionState } from "../log/session-state.ts";
import { runningSince } from "./start-times.ts";

function laneOf({ lane }: Given, head = lane.head): SessionState {
  const live = new SessionState(lane.id);
  live.durable = { ...lane, head };
  return live;
}

const times = async (past: Given) => Object.fromEntries(await runningSince(logStore(past.events).store, laneOf(past)));

const at = ({ events }: Given, type: Event["type"]): number =>
  timeAt(events.findLastIndex((one) => one.type === type) + 1);

test("G36: an idle session has no times, and its log is not read for them", async () => {
  const past = given(...running("run_a"), settleTurn("turn_a.1"));
  const { store, reads } = logStore(past.events);
  expect(await runningSince(store, laneOf(past))).toEqual(new Map());
  expect(reads).toEqual([]);
});

test("G36: a live run and its live calls have their times; ended calls do not", async () => {
  const before = given(...running("run_z"), call("call_z.1"), settleCall("call_z.1"), settleTurn("turn_z.1"));
  const begun = before.and(...running("run_a"));
  const past = begun.and(call("call_a.1"), call("call_a.2"), settleCall("call_a.1"));
  const told = { run_a: at(begun, "run.started"), "call_a.2": at(past, "call.requested") };
  expect(await times(past)).toEqual(told);
  // A call that is being stopped keeps its start time.
  expect(await times(past.and(cancelCall("call_a.2")))).toEqual(told);
});

test("G36: a recovered run has the time of its recovery", async () => {
  const past = given(...running("run_a"), settleTurn("turn_a.1", { next: "turn" }), park, recover());
  expect(await times(past)).toEqual({ run_a: at(past, "run.recovered") });
});

test("G36: removed events, or a log that ends early, cost the times and nothing else", async () => {
  const past = given(...running("run_a"), call("call_a.1"));
  const { events } = past;
  expect([...(await runningSince(logStore(events, 4).store, laneOf(past))).keys()]).toEqual(["call_a.1"]);
  expect(await runningSince(logStore(events, events.length).store, laneOf(past))).toEqual(new Map());
  expect(await runningSince(logStore([]).store, laneOf(past))).toEqual(new Map());
});

/** More events than are read from the end of a log. */
const much = (runId: RunId): readonly Event[] =>
  Array.from({ length: 20 * PAGE_EVENTS_MAX }, () => ({
    ...{ type: "turn.extended", runId, turnId: turnId(runId, 1), text: "x" },
  }));

test("G36: a run with a long log is read at its beginning and its end: calls in between have no time", async () => {
  const begun = given(...running("run_a"));
  const asked = (callId: CallId): Event => ({
    ...{ type: "call.requested", runId: "run_a", callId, name: "tool", input: null },
  });
  const more = much("run_a");
  const events = [...begun.events, asked("call_a.1"), ...more, asked("call_a.2"), ...more, asked("call_a.3")];
  const live = begun.and(call("call_a.1"), call("call_a.2"), call("call_a.3"));
  const { store, reads } = logStore(events);
  const found = await runningSince(store, laneOf(live, events.length));
  expect([...found.keys()]).toEqual(["run_a", "call_a.1", "call_a.3"]);
  expect(found.get("call_a.3")).toBe(timeAt(events.length));
  // Its first page, and sixteen from the end.
  expect(reads).toHaveLength(17);
});

test("G36: a run after a long earlier one has its own start time", async () => {
  const waits = given(accept("run_a"), accept("run_b"), { type: "move", runId: "run_b", to: "front" }, start);
  const begun = waits.and(settleTurn("turn_b.1"), start);
  const ended = begun.events.slice(waits.events.length);
  const before = [...waits.events, ...much("run_b"), ...ended];
  const startedAt = before.findLastIndex(({ type }) => type === "run.started") + 1;
  const events = [...before, ...much("run_a")];
  const found = await runningSince(logStore(events).store, laneOf(begun, events.length));
  expect(found).toEqual(new Map([["run_a", timeAt(startedAt)]]));
});
