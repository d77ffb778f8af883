// The history checker on processes that are dying after their call has ended.
import { describe, expect, test } from "vitest";
import {
  call,
  callSettled,
  cancelledBy,
  cancelRequested,
  failed,
  policy,
  processRequested,
  processSettled,
  running,
  runSettled,
  user,
} from "../../../test/fixtures/commands.ts";
import { given } from "../../testing/given.ts";
import type { CancelReason, Outcome } from "../model/cancel.ts";
import type { Event } from "../model/event.ts";
import type { CallId, ProcessId, TurnId } from "../model/ids.ts";
import { verify } from "./verify.ts";

/** The guarantees that the checker reports as broken. */
const broken = (...events: readonly Event[]): readonly string[] =>
  verify(events.map((event, index) => ({ ...event, seq: 1 + index, at: 0 }))).map(({ guarantee }) => guarantee);

const first = "proc_1.1";
const stopped = cancelledBy(user);
const callCancelled = (callId: CallId): Event => ({
  type: "call.cancel_requested",
  runId: "run_a",
  callId,
  reason: user,
});
const turnSettled = (turnId: TurnId, next: "turn" | "end", outcome: Outcome): Event => ({
  ...{ type: "turn.settled", runId: "run_a", turnId, outcome, next },
});

/** run_a has two calls, and the first of them a process. */
const { events: busy } = given(...running("run_a"), call("call_a.1"), call("call_a.2"));
const owned: readonly Event[] = [...busy, processRequested(first, "call_a.1")];
const idle: readonly Event[] = [{ type: "session.created", sessionId: "ses_1" }, processRequested(first)];

describe("a dying process", () => {
  const handed = (processId: ProcessId, dying: CancelReason): Event => ({
    ...{ type: "process.detached", processId, owner: "ses_1", feedback: "silent", dying },
  });
  const naming = (...dying: ProcessId[]): Outcome => ({ ...stopped, dying }) as Outcome;
  const of = { kind: "parent", id: "call_a.1" } as const;

  test("G19: is handed over by the end of its call, and by nothing else", () => {
    expect(broken(...owned, handed(first, of), callSettled("call_a.1", failed))).toEqual([]);
    expect(broken(...owned, handed(first, of), callSettled("call_a.2"))).toEqual(["G19"]);
    expect(broken(...owned, handed(first, of), processSettled(first, cancelledBy(of)))).toEqual(["G19"]);
    expect(broken(...idle, handed(first, user))).toEqual(["G19"]);
  });

  test("G15: has a reason that was recorded, or that of its call", () => {
    const shutdown = { kind: "shutdown" } as const;
    const ended = callSettled("call_a.1", { ...cancelledBy(shutdown), dying: [first] } as Outcome);
    expect(broken(...owned, handed(first, shutdown), ended)).toEqual([]);
    expect(broken(...owned, handed(first, shutdown), callSettled("call_a.1"))).toEqual(["G15"]);
    const asked = [...owned, callCancelled("call_a.1")];
    expect(broken(...asked, handed(first, policy), callSettled("call_a.1", naming(first)))).toEqual(["G10"]);
  });

  test("G12: is named by the outcomes of its call and its run, as long as it is dying", () => {
    const asked = [...owned, cancelRequested("run_a")];
    const call = callSettled("call_a.1", naming(first));
    expect(broken(...asked, handed(first, user), callSettled("call_a.1", stopped))).toEqual(["G12"]);
    expect(broken(...asked, processSettled(first, stopped), call)).toEqual(["G12"]);
    const both = [call, callSettled("call_a.2", stopped)];
    const over = [...asked, handed(first, user), ...both, turnSettled("turn_a.1", "end", stopped)];
    expect(broken(...over, runSettled("run_a", naming(first)))).toEqual([]);
    expect(broken(...over, runSettled("run_a", stopped))).toEqual(["G12"]);
    const gone = processSettled(first, stopped);
    expect(broken(...over, gone, runSettled("run_a", stopped))).toEqual([]);
    expect(broken(...over, gone, runSettled("run_a", naming(first)))).toEqual(["G12"]);
  });
});
