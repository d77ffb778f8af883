// The history checker on the session itself, and on positions that the queue does not have.
import { describe, expect, test } from "vitest";
import { cancelledBy, completed, runSettled, turnRequested } from "../../../test/fixtures/commands.ts";
import type { Event } from "../model/event.ts";
import type { RunId } from "../model/ids.ts";
import type { Delivery } from "../model/prompt.ts";
import { type Finding, verify } from "./verify.ts";

const reason = { kind: "closed" } as const;
const created: Event = { type: "session.created", sessionId: "ses_1" };
const closed: Event = { type: "session.closed", reason };
const accepted = (runId: RunId, delivery: Delivery = "queue"): Event => ({
  ...{ type: "run.accepted", runId, prompt: { text: runId } },
  delivery,
});
const started: Event = { type: "run.started", runId: "run_a" };
const cancelled = (...covers: readonly RunId[]): Event => ({ type: "session.cancel_requested", covers, reason });
const own: Event = { type: "run.cancel_requested", runId: "run_a", reason };
const moved = (index: number): Event => ({ type: "run.moved", runId: "run_b", index });
const requeued: Event = { type: "run.requeued", runId: "run_b" };

/** The findings with their positions and messages. */
function findings(events: readonly Event[], from = 1): readonly Finding[] {
  return verify(events.map((event, index) => ({ ...event, seq: from + index, at: 0 })));
}

describe("a session that is closed", () => {
  test("was open", () => {
    expect(findings([created, closed])).toEqual([]);
    expect(findings([closed])).toEqual([
      { guarantee: "G3", seq: 1, message: "The session was closed although it is absent." },
    ]);
    expect(findings([created, closed, closed])).toEqual([
      { guarantee: "G3", seq: 3, message: "The session was closed although it is closed." },
    ]);
    // Whether it was is not kept.
    expect(findings([closed], 7)).toEqual([]);
  });

  test("cannot have its mode set", () => {
    expect(findings([created, closed, { type: "session.mode_set", mode: "plan" }])).toEqual([
      { guarantee: "G3", seq: 3, message: "The session was given a mode although it is closed." },
    ]);
  });

  test("G9: cancels its runs at once, with no other event between", () => {
    const left = {
      guarantee: "G9",
      message: "The session was closed, but what it had taken on was not cancelled at once.",
    };
    const withdrawn = runSettled("run_a", cancelledBy(reason));
    const queued = [created, accepted("run_a")];
    expect(findings([...queued, closed, cancelled("run_a"), withdrawn])).toEqual([]);
    expect(findings([...queued, closed, withdrawn])).toEqual([{ ...left, seq: 4 }]);
    const live = [...queued, started];
    expect(findings([...live, closed, turnRequested("run_a", "turn_a.1")])).toEqual([{ ...left, seq: 5 }]);
    const steered = [...live, accepted("run_b", "steer"), cancelled("run_a", "run_b"), own];
    // The live run is covered already; a waiting steer has not ended yet.
    expect(findings([...steered, closed, requeued])).toEqual([{ ...left, seq: 8 }]);
  });

  test("needs no cancel if everything is stopping or has ended", () => {
    const live = [created, accepted("run_a"), started];
    expect(findings([...live, cancelled("run_a"), own, closed, runSettled("run_a", cancelledBy(reason))])).toEqual([]);
    expect(
      findings([...live.slice(0, 2), cancelled("run_a"), runSettled("run_a", cancelledBy(reason)), closed]),
    ).toEqual([]);
  });
});

describe("a cancel of a session", () => {
  const over = runSettled("run_a", cancelledBy(reason));
  const live = [created, accepted("run_a"), started, cancelled("run_a")];
  const found = { guarantee: "G7", seq: 5 };

  test("G7: is followed by that of its live run at once", () => {
    expect(findings([...live, own, over])).toEqual([]);
    const [one, ...others] = findings([...live, over]);
    expect(one).toMatchObject(found);
    expect(one?.message).toBe("A cancel of the session covers run_a, but its own cancel was not recorded at once.");
    expect(others).toEqual([]);
  });

  test("G7: is not satisfied by the cancel of another run, or a later one", () => {
    expect(findings([...live, { type: "run.cancel_requested", runId: "run_b", reason }])[0]).toMatchObject(found);
    expect(findings([...live, accepted("run_b"), own])[0]).toMatchObject(found);
  });
});

describe("a position in the queue", () => {
  test("that does not exist is reported", () => {
    const queue = [created, accepted("run_a"), accepted("run_b"), accepted("run_c")];
    for (const index of [0, 1, 2]) expect(findings([...queue, moved(index)])).toEqual([]);
    for (const index of [-1, 3, Number.NaN]) {
      expect(findings([...queue, moved(index)])).toEqual([
        { guarantee: "G6", seq: 5, message: "run_b was moved to a place that the queue does not have." },
      ]);
    }
  });

  test("is not given to a steer that can still be taken in", () => {
    const steered = [created, accepted("run_a"), started, accepted("run_b", "steer")];
    expect(findings([...steered, requeued, turnRequested("run_a", "turn_a.1")])).toEqual([
      { guarantee: "G5", seq: 6, message: "run_b went back to the queue, though it could still be taken in." },
    ]);
    expect(findings([...steered, requeued, { type: "run.moved", runId: "run_b", index: 0 }])).toEqual([]);
    const turn = [turnRequested("run_a", "turn_a.1"), settledTurn];
    expect(findings([...steered, ...turn, runSettled("run_a", completed), requeued])).toEqual([]);
  });
});

test("a steer that was taken in settles at once: requeueing it is one finding", () => {
  const taken: Event = { type: "run.taken", runId: "run_b", into: "run_a", turnId: "turn_a.1" };
  const live = [created, accepted("run_a"), started, turnRequested("run_a", "turn_a.1"), accepted("run_b", "steer")];
  expect(findings([...live, taken, requeued])).toEqual([
    { guarantee: "G5", seq: 7, message: "run_b was taken into run_a, but its own outcome did not follow at once." },
  ]);
});

const settledTurn: Event = {
  type: "turn.settled",
  runId: "run_a",
  turnId: "turn_a.1",
  outcome: completed,
  next: "end",
};
