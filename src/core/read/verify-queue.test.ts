// The history checker on waiting runs: the queue, steers, interrupts and keys. Each rule has one lawful history, and
// the same with one change.
import { describe, expect, test } from "vitest";
import {
  accept,
  call,
  cancelledBy,
  cancelRequested,
  cancelRun,
  cancelSession,
  completed,
  policy,
  requeued,
  running,
  runSettled,
  settleCall,
  settleTurn,
  start,
  turnRequested,
  user,
} from "../../../test/fixtures/commands.ts";
import { type Given, given } from "../../testing/given.ts";
import type { Event, Recorded } from "../model/event.ts";
import type { RunId } from "../model/ids.ts";
import type { Delivery } from "../model/prompt.ts";
import { verify, verifyAtRest } from "./verify.ts";

const recorded = (events: readonly Event[]): readonly Recorded[] =>
  events.map((event, index) => ({ ...event, seq: 1 + index, at: 0 }));

/** The guarantees that the checker reports as broken. */
const broken = (...events: readonly Event[]): readonly string[] =>
  verify(recorded(events)).map((finding) => finding.guarantee);

const created: Event = { type: "session.created", sessionId: "ses_1" };
const accepted = (runId: RunId, delivery: Delivery = "queue"): Event => ({
  type: "run.accepted",
  runId,
  prompt: { text: runId },
  delivery,
});
const started = (runId: RunId): Event => ({ type: "run.started", runId });
const moved = (runId: RunId, index: number): Event => ({ type: "run.moved", runId, index });
const steered = (runId: RunId): Event => ({ type: "run.steered", runId });
const withdrawn = (runId: RunId): Event => runSettled(runId, stopped);
const sessionCancelled = (...covers: readonly RunId[]): Event => ({
  type: "session.cancel_requested",
  reason: user,
  covers,
});
/** A cancel of the session while run_a is live. */
const liveCancelled = (...others: readonly RunId[]): readonly Event[] => [
  sessionCancelled("run_a", ...others),
  { type: "run.cancel_requested", runId: "run_a", reason: user },
];
const stopped = cancelledBy(user);
const into = (runId: RunId) => ({ kind: "completed", into: runId }) as const;
const turnOver: Event = { type: "turn.settled", runId: "run_a", turnId: "turn_a.1", outcome: completed, next: "end" };

/** run_a with its live first turn. */
const live: readonly Event[] = [created, accepted("run_a"), started("run_a"), turnRequested("run_a", "turn_a.1")];
/** run_a ends; what happens to its steers is still to follow. */
const ends: readonly Event[] = [turnOver, runSettled("run_a", completed)];

describe("a lawful history has no findings", () => {
  /** Completes these runs, in this order. */
  const inOrder = (past: Given, ...runs: readonly string[]): Given =>
    runs.reduce((so, run) => so.and(start, settleTurn(`turn_${run}.1`)), past);
  const begun = given(...running("run_a"));
  const over = settleTurn("turn_a.1");
  const lawful: Readonly<Record<string, Given>> = {
    "a prompt that wants an idle session, and finds one": inOrder(given(accept("run_a", { delivery: "reject" })), "a"),
    "an interrupt of nobody": inOrder(given(accept("run_a", { delivery: "interrupt" })), "a"),
    "an interrupt of a run that is being stopped": inOrder(
      begun.and(cancelRun("run_a", policy), accept("run_b", { delivery: "interrupt" }), over),
      "b",
    ),
    "interrupts before the queue, the first of them first": inOrder(
      begun.and(
        accept("run_b"),
        accept("run_c", { delivery: "interrupt" }),
        accept("run_d", { delivery: "interrupt" }),
        over,
      ),
      "c",
      "d",
      "b",
    ),
    "interrupts without a queue, the first of them first": inOrder(
      begun.and(accept("run_b", { delivery: "interrupt" }), accept("run_c", { delivery: "interrupt" }), over),
      "b",
      "c",
    ),
    "a run that is moved to the back": inOrder(
      given(accept("run_a"), accept("run_b"), { type: "move", runId: "run_a", to: "back" }),
      "b",
      "a",
    ),
    "one of many that is withdrawn": inOrder(
      given(accept("run_a"), accept("run_b"), accept("run_c"), cancelRun("run_b")),
      "a",
      "c",
    ),
    "steers that are put back, where they would have stood": inOrder(
      begun.and(
        accept("run_b"),
        accept("run_s", { delivery: "steer" }),
        accept("run_t", { delivery: "steer" }),
        accept("run_c"),
        over,
      ),
      "b",
      "s",
      "t",
      "c",
    ),
    "a steer that is put back to an earlier run alone": inOrder(
      begun.and(accept("run_b"), accept("run_s", { delivery: "steer" }), over),
      "b",
      "s",
    ),
    "a steer that is put back, behind a later interrupt": inOrder(
      begun.and(accept("run_s", { delivery: "steer" }), accept("run_i", { delivery: "interrupt" }), over),
      "i",
      "s",
    ),
    "a steer that comes after the last turn, and is queued": inOrder(
      begun.and(call("call_a.1"), over, accept("run_s", { delivery: "steer" }), settleCall("call_a.1")),
      "s",
    ),
    "requests with a key, and what was answered": given(
      { ...accept("run_a"), once: { key: "k", content: "c" } },
      { ...accept("run_b"), once: { key: "l", content: "d" } },
      { ...cancelSession(), once: { key: "m", content: "e" } },
    ),
  };
  test.each(Object.entries(lawful))("%s", (_, { events }) => {
    expect(verifyAtRest(recorded(events))).toEqual([]);
  });

  test("a steer that is withdrawn when its live run ends", () => {
    const cancels = [sessionCancelled("run_a", "run_s"), cancelRequested("run_a"), turnOver];
    const both = [runSettled("run_a", stopped), withdrawn("run_s")];
    expect(verifyAtRest(recorded([...live, accepted("run_s", "steer"), ...cancels, ...both]))).toEqual([]);
  });
  test("an interrupt that was cancelled before it arrived interrupts nothing", () => {
    const [interrupt, end] = [accepted("run_i", "interrupt"), withdrawn("run_i")];
    expect(verifyAtRest(recorded([...live, interrupt, end, ...ends]))).toEqual([]);
    expect(broken(...live, interrupt, turnOver)).toContain("G5");
  });
  test("the answer to a request, even in an idle session", () => {
    const answered: Event = { type: "request.answered", key: "k", content: "c", answer: null };
    expect(broken(created, answered)).toEqual([]);
    expect(broken(...live, answered, answered)).toEqual([]);
  });
});

describe("one change makes it unlawful", () => {
  const steer = accepted("run_s", "steer");
  const queued = accepted("run_b");
  const take = (runId: RunId, into: RunId): Event => ({ type: "run.taken", runId, into, turnId: "turn_a.1" });
  const rows: Readonly<Record<string, readonly [readonly Event[], ...(readonly string[])]>> = {
    "G2: a live run is accepted again": [[...live, accepted("run_a")], "G2"],
    "G3: a session is created twice": [[created, created], "G3"],
    "G4: something of a run that waits": [[created, queued, turnRequested("run_b", "turn_b.1")], "G4"],
    "G4: a later run begins before one that was left when another was withdrawn": [
      [created, accepted("run_a"), queued, accepted("run_c"), withdrawn("run_a"), started("run_c")],
      "G4",
    ],
    "G4: a later interrupt begins before an earlier one": [
      [created, accepted("run_i", "interrupt"), accepted("run_j", "interrupt"), started("run_j")],
      "G4",
    ],
    "G5: a session with a queue accepts what wants an idle one": [[created, queued, accepted("run_c", "reject")], "G5"],
    "G5: an interrupt cancels somebody else": [
      [...live, accepted("run_i", "interrupt"), cancelRequested("run_i")],
      "G5",
      "G4",
    ],
    "G5: a queued run is steered, and nobody can take it in": [[created, queued, steered("run_b")], "G5"],
    "G5: a queued run is steered into a run that has had its last turn": [
      [...live, queued, turnOver, steered("run_b")],
      "G5",
    ],
    "G5: a run goes back to the queue that never left it": [[...live, queued, steer, requeued("run_b")], "G5"],
    "G5: a steer goes back twice, and another one never": [
      [...live, steer, accepted("run_t", "steer"), ...ends, requeued("run_t"), requeued("run_t")],
      "G5",
    ],
    "G5: a queued run is taken in": [[...live, queued, steer, take("run_b", "run_a")], "G5"],
    "G5: a steer is taken into a run that is not live": [[...live, steer, take("run_s", "run_z")], "G5"],
    "G5: a steer is taken in, and another one ends": [
      [...live, steer, accepted("run_t", "steer"), take("run_s", "run_a"), withdrawn("run_t")],
      "G5",
    ],
    "G5: a steer is taken in, and then goes back": [[...live, steer, take("run_s", "run_a"), requeued("run_s")], "G5"],
    "G5: a steer ends as taken into another run than the live one": [
      [...live, steer, runSettled("run_s", into("run_z"))],
      "G5",
    ],
    "G5: a steer ends as taken into a run that is over": [
      [...live, steer, ...ends, runSettled("run_s", into("run_a"))],
      "G5",
    ],
    "G5: a queued run ends as taken in": [[...live, queued, runSettled("run_b", into("run_a"))], "G5"],
    "G5: a steer ends as taken in, and no turn has heard it": [
      [...live, steer, runSettled("run_s", into("run_a"))],
      "G5",
    ],
    "G10: a queued run is cancelled with its session, and ends for another reason": [
      [created, queued, sessionCancelled("run_b"), runSettled("run_b", cancelledBy(policy))],
      "G10",
    ],
    "G15: a turn has heard a steer, and it ends as withdrawn": [
      [...live, steer, take("run_s", "run_a"), withdrawn("run_s")],
      "G15",
    ],
    "G6: a run is moved to the first place that is none": [[created, queued, moved("run_b", 1)], "G6"],
    "G15: a steer that was cancelled ends as taken in": [
      [...live, steer, ...liveCancelled("run_s"), runSettled("run_s", into("run_a"))],
      "G15",
    ],
    "G15: a steer ends as completed by itself": [[...live, steer, runSettled("run_s", completed)], "G15"],
  };
  test.each(Object.entries(rows))("%s", (_, [events, ...guarantees]) => {
    expect(broken(...events)).toEqual(guarantees);
  });
});
