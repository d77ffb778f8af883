// The messages of the history checker: one mistake is one finding, however the log continues, and a finding names what
// it is about.
import { describe, expect, test } from "vitest";
import {
  added,
  asked,
  callRequested,
  callSettled,
  cancelledBy,
  cancelRequested,
  completed,
  failed,
  item,
  itemsTaken,
  lost,
  plainQuestion,
  processDetached,
  processRequested,
  processSettled,
  recovered,
  runSettled,
  turnRequested,
  user,
  wanted,
} from "../../../test/fixtures/commands.ts";
import type { Event, Recorded } from "../model/event.ts";
import type { ProcessId, RunId, TurnId, Work } from "../model/ids.ts";
import type { Delivery } from "../model/prompt.ts";
import { verify, verifyAtRest } from "./verify.ts";

const recorded = (events: readonly Event[]): readonly Recorded[] =>
  events.map((event, index) => ({ ...event, seq: 1 + index, at: 0 }));

const created: Event = { type: "session.created", sessionId: "ses_1" };
const closed: Event = { type: "session.closed", reason: { kind: "closed" } };
const accepted = (runId: RunId, delivery: Delivery = "queue"): Event => ({
  type: "run.accepted",
  runId,
  prompt: { text: runId },
  delivery,
});
const started = (runId: RunId): Event => ({ type: "run.started", runId });
const turnSettled = (turnId: TurnId, next: "turn" | "end", outcome = completed): Event => ({
  type: "turn.settled",
  runId: "run_a",
  turnId,
  outcome,
  next,
});
const parked: Event = { type: "run.parked", runId: "run_a" };
const processStarted = (processId: ProcessId): Event => ({
  type: "process.started",
  processId,
  pid: 1,
  tier: "A",
  profile: "open",
});
const told = (id: ProcessId, more: { wake?: true; heldBy?: Work } = { wake: true }): Event => ({
  type: "inbox.added",
  item: item(id),
  processId: id,
  ...more,
});
const edited: Event = { type: "run.edited", runId: "run_a", prompt: { text: "x" } };

const first = "proc_1.1";
const one = callRequested(wanted("call_a.1"));
const two = callRequested(wanted("call_a.2"));
const repeatable = callRequested(wanted("call_a.1", { idempotent: true }));
const next = turnRequested("run_a", "turn_a.2");
const x = item("x");

/** run_a with its live first turn. */
const live: readonly Event[] = [created, accepted("run_a"), started("run_a"), turnRequested("run_a", "turn_a.1")];
/** The first turn has ended, and another is to follow. */
const ended: readonly Event[] = [...live, turnSettled("turn_a.1", "turn")];
/** run_a is over. */
const over: readonly Event[] = [turnSettled("turn_a.1", "end"), runSettled("run_a", completed)];
/** A result that call_a.1 waits for. */
const held: readonly Event[] = [
  ...live,
  one,
  processRequested(first),
  processSettled(first),
  told(first, { heldBy: "call_a.1", wake: true }),
];

describe("G22: a result that a turn waits for", () => {
  const begun: readonly Event[] = [...live, processRequested(first)];
  const awaited: readonly Event[] = [...begun, processSettled(first), told(first, { heldBy: "turn_a.1", wake: true })];
  const ends = (heard: readonly ProcessId[], outcome = completed): Event =>
    ({ ...turnSettled("turn_a.1", "turn", outcome), heard }) as Event;
  const takes = itemsTaken("turn_a.2", item(first));
  const rows: Readonly<Record<string, readonly [readonly Event[], ...(readonly string[])]>> = {
    "is received by it, and taken by no other": [[...awaited, ends([first]), next]],
    "is taken by the next turn, if it has not received it": [[...awaited, ends([]), takes, next]],
    "is not taken by the turn that waits": [[...awaited, itemsTaken("turn_a.1", item(first))], "G22"],
    "is not taken once more after it": [[...awaited, ends([first]), takes, next], "G22"],
    "is not lost with a turn that has not received it": [[...awaited, ends([]), next], "G22"],
    "is not received by a turn that failed": [[...awaited, ends([first], failed as typeof completed), next], "G22"],
    "is not received before there is one": [[...begun, ends([first]), next], "G22"],
    "is not held for a turn that is over": [
      [
        ...begun,
        turnSettled("turn_a.1", "turn"),
        next,
        processSettled(first),
        told(first, { heldBy: "turn_a.1", wake: true }),
      ],
      "G22",
    ],
  };
  test.each(Object.entries(rows))("%s", (_, [log, ...broken]) => {
    expect(verify(recorded(log)).map(({ guarantee }) => guarantee)).toEqual(broken);
  });
});

describe("one mistake is one finding, however the log continues", () => {
  const rows: Readonly<Record<string, readonly [readonly Event[], ...(readonly string[])]>> = {
    "a steer that was forgotten waits in the queue from then on": [
      [...live, accepted("run_s", "steer"), ...over, accepted("run_b"), started("run_s")],
      "G5",
    ],
    "a background process that was not cancelled with its session": [
      [created, processRequested(first), closed, processStarted(first), processStarted(first)],
      "G9",
    ],
    "a question that outlived its call": [
      [...ended, one, asked("ask_a.1", "call_a.1"), callSettled("call_a.1"), runSettled("run_a", failed)],
      "G9",
    ],
    "a question whose asker was gone": [
      [
        ...[...ended, repeatable, asked("ask_a.1", "call_a.1", plainQuestion)],
        ...[recovered("run_a", 2), recovered("run_a", 3)],
      ],
      "G25",
    ],
    "a call that had no result when its run changed hands": [
      [...ended, one, recovered("run_a", 2), recovered("run_a", 3)],
      "G17",
    ],
    "a turn that was requested while its run was parked": [
      [...ended, parked, next, turnSettled("turn_a.2", "end"), recovered("run_a", 1)],
      "G25",
    ],
    "an inbox that a turn has not taken": [
      [
        ...[...live, added(x), turnSettled("turn_a.1", "turn"), next],
        ...[turnSettled("turn_a.2", "turn"), turnRequested("run_a", "turn_a.3")],
      ],
      "G22",
    ],
    "a run that was not begun for what wanted one": [
      [created, processRequested(first), processSettled(first), told(first), added(x), added(x)],
      "G22",
    ],
    "a process that outlived its call": [
      [...live, one, processRequested(first, "call_a.1"), callSettled("call_a.1"), ...over],
      "G19",
    ],
    "a process that outlived its worker": [
      [...ended, processRequested(first), recovered("run_a", 2), recovered("run_a", 3)],
      "G20",
    ],
    "a process that never began, and was detached": [[created, processDetached(first)], "G16"],
  };
  test.each(Object.entries(rows))("%s", (_, [events, ...guarantees]) => {
    expect(verify(recorded(events)).map((finding) => finding.guarantee)).toEqual(guarantees);
  });

  test("a run that a finding settled is not reported again at rest", () => {
    const outlived = [...live, one, processRequested(first, "call_a.1"), callSettled("call_a.1"), ...over];
    expect(verifyAtRest(recorded(outlived))).toMatchObject([{ guarantee: "G19" }]);
    expect(verifyAtRest(recorded([created, processDetached(first)]))).toMatchObject([{ guarantee: "G16" }]);
  });

  test("a call that is left behind keeps its held result, and no second finding follows", () => {
    const behind: readonly Event[] = [turnSettled("turn_a.1", "turn"), next];
    const found = (events: readonly Event[]) => verify(recorded(events)).map((finding) => finding.guarantee);
    const later = [callSettled("call_a.1"), itemsTaken("turn_a.2", item(first))];
    expect(found([...held, ...behind, ...later])).toEqual(["G17"]);
    expect(found([...held, added(x), ...behind, ...later])).toEqual(["G17", "G22"]);
  });
});

describe("a finding names what it is about", () => {
  const lostTurn = turnSettled("turn_a.1", "turn", lost);
  const wanting: Event = { type: "inbox.added", item: x, wake: true };
  const second = "proc_1.2";
  const both: readonly Event[] = [created, processRequested(first), processRequested(second)];
  const rows: readonly (readonly [string, readonly Event[]])[] = [
    [
      "The live run ended and run_s, run_t was neither taken in nor put back into the queue.",
      [...live, accepted("run_s", "steer"), accepted("run_t", "steer"), ...over, accepted("run_b")],
    ],
    ["run_a was edited, but it was not in the queue.", [...live, edited]],
    ["turn_a.2 was requested before call_a.1, call_a.2 had a result.", [...ended, one, two, next]],
    [
      "ask_a.1, ask_a.2 was not withdrawn at once with what it belongs to.",
      [
        ...[...live, one, asked("ask_a.1", "call_a.1"), asked("ask_a.2", "turn_a.1", plainQuestion)],
        ...[cancelRequested("run_a"), added(x)],
      ],
    ],
    [
      "proc_1.1, proc_1.2 was not cancelled at once with its session, which was closed.",
      [...both, closed, processStarted(first)],
    ],
    [
      "run_a was recovered before proc_1.1, proc_1.2 had ended, which ran under another worker.",
      [...live, processRequested(first), processRequested(second), lostTurn, recovered("run_a", 2)],
    ],
    ["An item without a process was not to begin a run once it has ended.", [...live, wanting]],
    [
      "proc_1.1 was to begin a run once it has ended.",
      [...live, processRequested(first), processSettled(first), told(first, {})],
    ],
  ];
  test.each(rows)("%s", (message, events) => {
    expect(verify(recorded(events)).map((finding) => finding.message)).toEqual([message]);
  });

  test("a finding has the position of the event that shows it", () => {
    const events = [...live, runSettled("run_a", cancelledBy(user))];
    expect(verify(recorded(events))).toMatchObject([
      { guarantee: "G17", seq: 5 },
      { guarantee: "G15", seq: 5 },
    ]);
  });
});
