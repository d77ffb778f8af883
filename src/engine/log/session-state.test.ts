// A lane in memory: whether it may be unloaded, and the output of its live turn.
import { expect, test } from "vitest";
import { accept, readyLane } from "../../../test/fixtures/commit.ts";
import { live, testEngine } from "../../../test/fixtures/engine.ts";
import { ControlError } from "../../core/errors.ts";
import { Gate } from "../../testing/gate.ts";
import { given } from "../../testing/given.ts";
import { settled } from "../../testing/manual-clock.ts";
import type { Flight, Pending, SessionState } from "./session-state.ts";

const entry = {} as Pending;
const flight = { entries: [entry] } as Partial<Flight> as Flight;
const trouble = { error: new ControlError("store_full", "The disk is full."), until: 50, failures: 1 };
const process = { type: "begin-process", owner: "ses_1", command: "sleep 9", feedback: "silent" } as const;

test("a lane is idle, and at rest, if no work is live and nothing is in flight", () => {
  expect([readyLane().idle, readyLane().atRest]).toEqual([true, true]);
});

test.each<readonly [string, Partial<SessionState>]>([
  ["is not loaded", { phase: "loading" }],
  ["was let go of", { phase: "gone" }],
  ["does not know what was written", { health: { kind: "unknown", ...trouble } }],
  ["has received something", { received: [entry] }],
  ["has decided something", { pending: [entry] }],
  ["has sent something", { flight }],
])("a lane is neither at rest nor idle that %s", (_, state) => {
  const lane = Object.assign(readyLane(), state);
  expect([lane.atRest, lane.idle]).toEqual([false, false]);
});

test("a lane whose batch the store has refused is at rest, and may be unloaded: nothing of that batch is kept", () => {
  const lane = Object.assign(readyLane(), { health: { kind: "refusing", scope: "all", ...trouble } });
  expect([lane.atRest, lane.idle]).toEqual([true, true]);
});

test.each([
  ["has a live run", given(accept("run_1"), { type: "start" })],
  ["has somebody in its queue", given(accept("run_1"))],
  ["has a process", given(process)],
])("a lane is not idle that %s", (_, { lane: decided }) => {
  const lane = Object.assign(readyLane(), { decided });
  expect([lane.atRest, lane.idle]).toEqual([true, false]);
});

test("the output of a turn is known until it has ended, even while it is being stopped", async () => {
  const house = testEngine();
  const { sessionId, runId, turn } = await live(house);
  const said = () => house.engine.lanes.peek(sessionId)?.outputSoFar();
  turn.call("write");
  await settled();
  expect(said()).toBeUndefined();
  turn.say("Hello");
  const { turnId } = turn.given;
  const told = { delta: { type: "delta", runId, turnId, text: "Hello", from: 0 } };
  expect(said()).toMatchObject(told);
  await house.engine.cancel.run(runId, { kind: "user" });
  expect(said()).toMatchObject({ ...told, at: house.engine.lanes.peek(sessionId)?.durable.head });
  // It has ended, although that is not recorded yet.
  house.store.always("append", { kind: "delay", until: new Gate() });
  turn.endCancelled();
  await settled();
  expect(said()).toBeUndefined();
});
