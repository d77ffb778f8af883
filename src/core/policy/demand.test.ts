// The demand for each phase of a run.
import { expect, test } from "vitest";
import {
  accept,
  call,
  cancelCall,
  cancelRun,
  park,
  policy,
  recover,
  running,
  settleTurn,
  start,
  user,
} from "../../../test/fixtures/commands.ts";
import { type Given, given } from "../../testing/given.ts";
import { demand, type Effect } from "./demand.ts";

const live = given(...running("run_a"));
const calling = live.and(call("call_a.1"), call("call_a.2"));

function demanded(past: Given): readonly Effect[] {
  if (past.lane.live === undefined) throw new Error("nothing is live");
  return demand(past.lane.live);
}

test("a running run demands its turn and its calls", () => {
  expect(demanded(live)).toEqual([{ type: "begin", work: "turn_a.1" }]);
  expect(demanded(calling)).toEqual([
    { type: "begin", work: "turn_a.1" },
    { type: "begin", work: "call_a.1" },
    { type: "begin", work: "call_a.2" },
  ]);
});

test("between turns it demands only its calls", () => {
  expect(demanded(calling.and(settleTurn("turn_a.1", { next: "turn" })))).toEqual([
    { type: "begin", work: "call_a.1" },
    { type: "begin", work: "call_a.2" },
  ]);
});

test("G9: a cancelled call is stopped for its own reason, and its siblings run", () => {
  expect(demanded(calling.and(cancelCall("call_a.1", policy)))).toEqual([
    { type: "begin", work: "turn_a.1" },
    { type: "stop", work: "call_a.1", reason: policy },
    { type: "begin", work: "call_a.2" },
  ]);
});

test("G11: a cancelled run demands that all its work stops, and nothing begins", () => {
  expect(demanded(calling.and(cancelRun("run_a", policy)))).toEqual([
    { type: "stop", work: "call_a.1", reason: policy },
    { type: "stop", work: "call_a.2", reason: policy },
    { type: "stop", work: "turn_a.1", reason: policy },
  ]);
});

test("an ending run stops its remaining calls, as their parent", () => {
  const reason = { kind: "parent", id: "run_a" };
  expect(demanded(calling.and(settleTurn("turn_a.1")))).toEqual([
    { type: "stop", work: "call_a.1", reason },
    { type: "stop", work: "call_a.2", reason },
  ]);
});

test("the first reason wins: a call that was cancelled before its run is stopped for its own reason", () => {
  const cancelled = calling.and(cancelCall("call_a.1", policy));
  const stop = { type: "stop", work: "call_a.1", reason: policy };
  expect(demanded(cancelled.and(cancelRun("run_a", user)))).toContainEqual(stop);
  expect(demanded(cancelled.and(settleTurn("turn_a.1")))).toContainEqual(stop);
});

test("a parked run demands nothing until it is recovered", () => {
  expect(demanded(calling.and(park))).toEqual([]);
  expect(demanded(calling.and(park, recover()))).toEqual([{ type: "begin", work: "turn_a.2" }]);
});

test("G25: after a crash the turn is demanded again, and no call is", () => {
  expect(demanded(calling.and(recover()))).toEqual([{ type: "begin", work: "turn_a.2" }]);
});

test("the demand depends on the state alone", () => {
  const other = given(accept("run_a"), accept("run_b"), start, call("call_a.1"), call("call_a.2"));
  expect(demanded(other)).toEqual(demanded(calling));
});
