import { describe, expect, test } from "vitest";
import {
  accept,
  call,
  cancelCall,
  cancelKey,
  cancelledBy,
  cancelRequested,
  cancelRun,
  cancelSession,
  close,
  completed,
  failed,
  lost,
  park,
  policy,
  recover,
  requeued,
  running,
  runSettled,
  settleCall,
  settleTurn,
  start,
  taken,
  turnRequested,
  user,
} from "../../../test/fixtures/commands.ts";
import { given } from "../../testing/given.ts";
import type { Outcome } from "../model/cancel.ts";
import type { Event, Recorded } from "../model/event.ts";
import type { CallId, RunId, TurnId } from "../model/ids.ts";
import { verify, verifyAtRest } from "./verify.ts";

const recorded = (events: readonly Event[], first = 1): readonly Recorded[] =>
  events.map((event, index) => ({ ...event, seq: first + index, at: 0 }));

/** The guarantees that the checker reports as broken. */
const broken = (...events: readonly Event[]): readonly string[] =>
  verify(recorded(events)).map((finding) => finding.guarantee);

const created: Event = { type: "session.created", sessionId: "ses_1" };
const accepted = (runId: RunId, more: object = {}): Event => ({
  type: "run.accepted",
  runId,
  prompt: { text: runId },
  delivery: "queue",
  ...more,
});
const started = (runId: RunId): Event => ({ type: "run.started", runId });
const turnSettled = (runId: RunId, turnId: TurnId, more: { outcome?: Outcome; next?: "turn" | "end" } = {}): Event => ({
  type: "turn.settled",
  runId,
  turnId,
  outcome: completed,
  next: "end",
  ...more,
});
const called = (callId: CallId): Event => ({
  type: "call.requested",
  runId: "run_a",
  callId,
  name: "tool",
  input: null,
});
const callSettled = (callId: CallId, outcome: Outcome = completed): Event => ({
  type: "call.settled",
  runId: "run_a",
  callId,
  outcome,
});
const callCancelled = (callId: CallId): Event => ({
  type: "call.cancel_requested",
  runId: "run_a",
  callId,
  reason: user,
});
const recovered = (attempt: number): Event => ({ type: "run.recovered", runId: "run_a", attempt });
const sessionCancelled = (...covers: readonly RunId[]): Event => ({
  type: "session.cancel_requested",
  reason: user,
  covers,
});

/** run_a with its live first turn. */
const live: readonly Event[] = [created, accepted("run_a"), started("run_a"), turnRequested("run_a", "turn_a.1")];
/** run_a, ended correctly. */
const over: readonly Event[] = [...live, turnSettled("run_a", "turn_a.1"), runSettled("run_a", completed)];

describe("a correct log has no findings", () => {
  const clean: Record<string, ReturnType<typeof given>> = {
    "two runs, one after the other": given(
      ...running("run_a"),
      accept("run_b"),
      settleTurn("turn_a.1", { outcome: failed }),
      start,
      settleTurn("turn_b.1"),
    ),
    "calls, one cancelled": given(
      ...running("run_a"),
      call("call_a.1"),
      call("call_a.2"),
      cancelCall("call_a.1"),
      settleCall("call_a.1", { outcome: cancelledBy(user) }),
      settleTurn("turn_a.1", { next: "turn" }),
      settleCall("call_a.2"),
      settleTurn("turn_a.2"),
    ),
    "calls that outlive the last turn": given(
      ...running("run_a"),
      call("call_a.1"),
      settleTurn("turn_a.1"),
      settleCall("call_a.1", { outcome: cancelledBy({ kind: "parent", id: "run_a" }) }),
    ),
    "a cancel of everything": given(
      ...running("run_a"),
      accept("run_b"),
      accept("run_c", { delivery: "steer" }),
      cancelSession(),
      settleTurn("turn_a.1", { outcome: cancelledBy(user) }),
    ),
    "a cancel of everything behind a cancel of one": given(
      ...running("run_a"),
      accept("run_b"),
      cancelRun("run_a", policy),
      cancelSession(),
      settleTurn("turn_a.1", { outcome: cancelledBy(policy) }),
    ),
    "a withdrawn run": given(accept("run_a", { key: "k" }), cancelKey("k")),
    "steers: taken in, turned into, and put back": given(
      ...running("run_a"),
      accept("run_b", { delivery: "steer" }),
      settleTurn("turn_a.1", { next: "turn" }),
      accept("run_c"),
      { type: "steer", runId: "run_c" },
      settleTurn("turn_a.2"),
      start,
      settleTurn("turn_c.1"),
    ),
    "an interrupt goes before the queue": given(
      ...running("run_a"),
      accept("run_b"),
      accept("run_c", { delivery: "interrupt" }),
      settleTurn("turn_a.1", { outcome: cancelledBy(user) }),
      start,
      settleTurn("turn_c.1"),
      start,
      settleTurn("turn_b.1"),
    ),
    "an edited and moved queue": given(
      accept("run_a"),
      accept("run_b"),
      { type: "edit", runId: "run_a", prompt: { text: "other" } },
      { type: "move", runId: "run_b", to: "front" },
      start,
      settleTurn("turn_b.1"),
      start,
      settleTurn("turn_a.1"),
    ),
    "crashes up to the limit": given(...running("run_a"), call("call_a.1"), recover(), recover(), recover()),
    "a crash while stopping": given(...running("run_a"), call("call_a.1"), cancelRun("run_a"), recover()),
    "parked, taken up, and parked again": given(
      ...running("run_a"),
      park,
      recover(),
      park,
      recover(),
      settleTurn("turn_a.3"),
    ),
    "parked, then cancelled": given(
      ...running("run_a"),
      accept("run_b", { delivery: "steer" }),
      park,
      cancelRun("run_a"),
      {
        type: "cancel-run",
        runId: "run_b",
        reason: user,
      },
    ),
    "lost, if that is what was asked for": given(...running("run_a"), recover("lose")),
    closed: given(...running("run_a"), close(), settleTurn("turn_a.1", { outcome: cancelledBy({ kind: "closed" }) })),
  };
  for (const [name, { events }] of Object.entries(clean)) {
    test(name, () => expect(verifyAtRest(recorded(events))).toEqual([]));
  }

  test("a log that retention has shortened", () => {
    const events = [runSettled("run_z", completed), accepted("run_a"), started("run_a")];
    expect(verify(recorded(events, 100))).toEqual([]);
  });
});

describe("one break of a guarantee is one finding", () => {
  test("G29: a gap", () => {
    const [first, second] = recorded([created, accepted("run_a")]);
    const gap = [first, { ...second, seq: 3 }] as Recorded[];
    expect(verify(gap).map(({ guarantee, seq }) => [guarantee, seq])).toEqual([["G29", 3]]);
  });

  test("G2: a run accepted twice", () => {
    expect(broken(created, accepted("run_a"), accepted("run_a"))).toEqual(["G2"]);
  });
  test("G2: a key given to two runs", () => {
    expect(broken(created, accepted("run_a", { key: "k" }), accepted("run_b", { key: "k" }))).toEqual(["G2"]);
  });
  test("G3: a run accepted by a closed session", () => {
    expect(broken(created, { type: "session.closed", reason: user }, accepted("run_a"))).toEqual(["G3"]);
  });
  test("G3: a run accepted without a session", () => {
    expect(broken(accepted("run_a"))).toEqual(["G3"]);
  });
  test("G3: an outcome of a run that was never accepted", () => {
    expect(broken(created, runSettled("run_a", cancelledBy(user)))).toEqual(["G3"]);
  });

  test("G4: two live runs", () => {
    expect(broken(...live, accepted("run_b"), started("run_b"))).toEqual(["G4"]);
  });
  test("G4: a start out of order", () => {
    expect(broken(created, accepted("run_a"), accepted("run_b"), started("run_b"))).toEqual(["G4"]);
  });
  test("G4: a start without an acceptance", () => {
    expect(broken(created, started("run_a"))).toEqual(["G4"]);
  });
  test("G4: a requeued steer behind one that was accepted later", () => {
    const events = [accepted("run_b", { delivery: "steer" }), accepted("run_c"), turnSettled("run_a", "turn_a.1")];
    expect(broken(...live, ...events, runSettled("run_a", completed), requeued("run_b"), started("run_c"))).toEqual([
      "G4",
    ]);
  });

  test("G5: an interrupt that interrupts nothing", () => {
    expect(broken(...live, accepted("run_b", { delivery: "interrupt" }), called("call_a.1"))).toEqual(["G5"]);
  });
  test("G5: a `reject` prompt accepted by a busy session", () => {
    expect(broken(...live, accepted("run_b", { delivery: "reject" }))).toEqual(["G5"]);
  });
  test("G5: a steer forgotten at the end of the run", () => {
    const events = [accepted("run_b", { delivery: "steer" }), turnSettled("run_a", "turn_a.1")];
    expect(broken(...live, ...events, runSettled("run_a", completed), accepted("run_c"))).toEqual(["G5"]);
  });
  test("G5: a steer taken in twice", () => {
    const take = taken("run_b", "run_a", "turn_a.1");
    expect(broken(...live, accepted("run_b", { delivery: "steer" }), ...take, ...take.slice(0, 1))).toEqual(["G5"]);
  });
  test("G5: a steer taken in without its own outcome", () => {
    const take = taken("run_b", "run_a", "turn_a.1").slice(0, 1);
    expect(broken(...live, accepted("run_b", { delivery: "steer" }), ...take, called("call_a.1"))).toEqual(["G5"]);
  });
  test("G5: a steer taken into a turn that has ended", () => {
    expect(broken(...live, accepted("run_b", { delivery: "steer" }), ...taken("run_b", "run_a", "turn_a.0"))).toEqual([
      "G5",
    ]);
  });

  test("G6: an edit after the start", () => {
    expect(broken(...live, { type: "run.edited", runId: "run_a", prompt: { text: "x" } })).toEqual(["G6"]);
  });
  test("G6: a move to a position that does not exist", () => {
    expect(broken(created, accepted("run_a"), { type: "run.moved", runId: "run_a", index: 3 })).toEqual(["G6"]);
  });

  test("G7: a cancel of the session that leaves out a queued run", () => {
    expect(broken(...live, accepted("run_b"), sessionCancelled("run_a"), cancelRequested("run_a"))).toEqual(["G7"]);
  });
  test("G7: a cancel of the session that leaves out the live run", () => {
    expect(broken(...live, sessionCancelled())).toEqual(["G7"]);
  });
  test("G7: a cancel of the session that covers a run it cannot reach", () => {
    expect(broken(...over, accepted("run_b"), sessionCancelled("run_a", "run_b"))).toEqual(["G7"]);
  });
  test("G7: parked although cancelled", () => {
    const events = [cancelRequested("run_a"), turnSettled("run_a", "turn_a.1", { outcome: cancelledBy(user) })];
    expect(broken(...live, ...events, { type: "run.parked", runId: "run_a" })).toEqual(["G7"]);
  });
  test("G8: a change after it was withdrawn", () => {
    const events = [created, accepted("run_a"), sessionCancelled("run_a")];
    expect(broken(...events, { type: "run.edited", runId: "run_a", prompt: { text: "x" } })).toEqual(["G8"]);
  });

  test("G10: a second reason", () => {
    expect(broken(...live, cancelRequested("run_a"), cancelRequested("run_a", policy))).toEqual(["G10"]);
  });
  test("G10: an outcome with another reason than the first", () => {
    const events = [cancelRequested("run_a"), turnSettled("run_a", "turn_a.1", { outcome: cancelledBy(user) })];
    expect(broken(...live, ...events, runSettled("run_a", cancelledBy(policy)))).toEqual(["G10"]);
  });
  test("G10: a call cancelled twice, or that does not exist", () => {
    expect(broken(...live, called("call_a.1"), callCancelled("call_a.1"), callCancelled("call_a.1"))).toEqual(["G10"]);
    expect(broken(...live, callCancelled("call_a.1"))).toEqual(["G10"]);
  });

  test("G11: a turn after the cancel", () => {
    const settled = turnSettled("run_a", "turn_a.1", { next: "turn" });
    expect(broken(...live, cancelRequested("run_a"), settled, turnRequested("run_a", "turn_a.2"))).toEqual(["G11"]);
  });
  test("G11: a call after the cancel", () => {
    expect(broken(...live, cancelRequested("run_a"), called("call_a.1"))).toEqual(["G11"]);
  });
  test("G11: a start after the cancel", () => {
    expect(broken(created, accepted("run_a"), sessionCancelled("run_a"), started("run_a"))).toEqual(["G11"]);
  });
  test("G11: a recovery after the cancel", () => {
    const settled = turnSettled("run_a", "turn_a.1", { outcome: lost, next: "turn" });
    expect(broken(...live, cancelRequested("run_a"), settled, recovered(2))).toEqual(["G11"]);
  });

  test("G14: two outcomes", () => {
    expect(broken(...over, runSettled("run_a", completed))).toEqual(["G14"]);
  });
  test("G14: a turn that ends twice", () => {
    const settled = turnSettled("run_a", "turn_a.1");
    expect(broken(...live, settled, settled)).toEqual(["G14"]);
  });
  test("G14: a turn's id used again", () => {
    const settled = turnSettled("run_a", "turn_a.1", { next: "turn" });
    expect(broken(...live, settled, turnRequested("run_a", "turn_a.1"))).toEqual(["G14"]);
  });

  test("G15: a run that ends as cancelled without a cancel", () => {
    const settled = turnSettled("run_a", "turn_a.1");
    expect(broken(...live, settled, runSettled("run_a", cancelledBy(user)))).toEqual(["G15"]);
  });
  test("G15: a cancelled run that ends as completed", () => {
    const settled = turnSettled("run_a", "turn_a.1");
    expect(broken(...live, cancelRequested("run_a"), settled, runSettled("run_a", completed))).toEqual(["G15"]);
  });
  test("G15: a waiting run that fails with the run before it", () => {
    expect(broken(created, accepted("run_a"), runSettled("run_a", failed))).toEqual(["G15"]);
  });
  test("G15: a call that ends as cancelled without a cancel", () => {
    expect(broken(...live, called("call_a.1"), callSettled("call_a.1", cancelledBy(user)))).toEqual(["G15"]);
  });

  test("G16: an event after the outcome", { meta: { id: "G16/event-after-outcome-reported" } }, () => {
    expect(broken(...over, called("call_a.1"))).toEqual(["G16"]);
  });
  test("G16: a turn after the last one", () => {
    const settled = turnSettled("run_a", "turn_a.1");
    expect(broken(...live, settled, turnRequested("run_a", "turn_a.2"))).toEqual(["G16"]);
  });
  test("G16: text of a turn that has ended", () => {
    const late: Event = { type: "turn.extended", runId: "run_a", turnId: "turn_a.1", text: "late" };
    expect(broken(...live, turnSettled("run_a", "turn_a.1"), late)).toEqual(["G16"]);
  });

  test("G17: a call without a result at the next turn", () => {
    const settled = turnSettled("run_a", "turn_a.1", { next: "turn" });
    expect(broken(...live, called("call_a.1"), settled, turnRequested("run_a", "turn_a.2"))).toEqual(["G17"]);
  });
  test("G17: a call without a result at the end of the run", () => {
    const settled = turnSettled("run_a", "turn_a.1");
    expect(broken(...live, called("call_a.1"), settled, runSettled("run_a", completed))).toEqual(["G17"]);
  });
  test("G17: a call with two results", () => {
    expect(broken(...live, called("call_a.1"), callSettled("call_a.1"), callSettled("call_a.1"))).toEqual(["G17"]);
  });
  test("G17: a call's id used again", () => {
    expect(broken(...live, called("call_a.1"), callSettled("call_a.1"), called("call_a.1"))).toEqual(["G17"]);
  });
  test("G17: a call outside of any turn", () => {
    const settled = turnSettled("run_a", "turn_a.1", { next: "turn" });
    expect(broken(...live, settled, accepted("run_b"), called("call_a.1"))).toEqual(["G17"]);
  });
  test("G17: a run that ends during its turn", () => {
    expect(broken(...live, runSettled("run_a", completed))).toEqual(["G17"]);
  });

  test("G18: a cost that is not a count", () => {
    const usage = { inputTokens: Number.NaN, outputTokens: 1, estimated: false };
    const settled = { ...turnSettled("run_a", "turn_a.1"), usage } as Event;
    expect(broken(...live, settled, runSettled("run_a", completed))).toEqual(["G18"]);
  });

  test("G25: more attempts than allowed", () => {
    const cut = (turn: TurnId): Event => turnSettled("run_a", turn, { outcome: lost, next: "turn" });
    const again = (attempt: number): readonly Event[] => [
      cut(`turn_a.${attempt - 1}`),
      recovered(attempt),
      turnRequested("run_a", `turn_a.${attempt}`),
    ];
    expect(broken(...live, ...again(2), ...again(3))).toEqual([]);
    expect(broken(...live, ...again(2), ...again(3), ...again(4))).toEqual(["G25"]);
  });
  test("G25: an attempt that is not counted", () => {
    const cut = turnSettled("run_a", "turn_a.1", { outcome: lost, next: "turn" });
    expect(broken(...live, cut, recovered(1))).toEqual(["G25"]);
  });
});

describe("at rest", () => {
  const rest = (...events: readonly Event[]) => verifyAtRest(recorded(events)).map((finding) => finding.guarantee);

  test("G1: a run that never began must have an outcome", () => {
    expect(rest(created, accepted("run_a"))).toEqual(["G1"]);
  });
  test("G8: a run that was cancelled before it began must have an outcome", {
    meta: { id: "G8/missing-outcome-reported" },
  }, () => {
    expect(rest(created, accepted("run_a"), sessionCancelled("run_a"))).toEqual(["G8"]);
  });
  test("G24: a run that has begun must have an outcome", () => {
    expect(rest(...live)).toEqual(["G24"]);
    expect(verify(recorded(live))).toEqual([]);
  });
});
