// Events for the store suite: short logs that the engine could have written.
import { expect } from "vitest";
import type { ControlCode } from "../../core/errors.ts";
import type { Outcome } from "../../core/model/cancel.ts";
import type { Event } from "../../core/model/event.ts";
import { callId, processId, type RunId, type Seq, type SessionId, turnId } from "../../core/model/ids.ts";
import { emptyLane, evolve, type Lane } from "../../core/model/lane.ts";
import type { Batch, Store } from "../../ports/store.ts";

export const SES: SessionId = "ses_a";
export const completed: Outcome = { kind: "completed" };

export const created = (sessionId: SessionId, title?: string, cwd?: string): Event => ({
  ...{ type: "session.created", sessionId },
  ...(title === undefined ? {} : { title }),
  ...(cwd === undefined ? {} : { cwd }),
});

export const accepted = (runId: RunId, more: { readonly key?: string; readonly text?: string } = {}): Event => ({
  type: "run.accepted",
  runId,
  prompt: { text: more.text ?? "hello" },
  delivery: "queue",
  ...(more.key === undefined ? {} : { key: more.key, content: `digest of ${more.key}` }),
});

export const started = (runId: RunId): readonly Event[] => [
  { type: "run.started", runId },
  { type: "turn.requested", runId, turnId: turnId(runId, 1) },
];

export const settled = (runId: RunId, outcome: Outcome = completed): Event => ({ type: "run.settled", runId, outcome });

export const callSettled = (runId: RunId, ordinal: number, outcome: Outcome): Event => ({
  type: "call.settled",
  runId,
  callId: callId(runId, ordinal),
  outcome,
});

/** A background process, which belongs to its session until it ends. */
export const processRequested = (session: SessionId, ordinal: number): Event => ({
  type: "process.requested",
  processId: processId(session, ordinal),
  owner: session,
  command: ["sleep", "infinity"],
  feedback: "silent",
});

export const processSettled = (session: SessionId, ordinal: number, outcome: Outcome): Event => ({
  type: "process.settled",
  processId: processId(session, ordinal),
  outcome,
});

/** A complete run: eight events in one append. */
export const wholeRun = (runId: RunId): readonly Event[] => [
  accepted(runId),
  ...started(runId),
  { type: "turn.extended", runId, turnId: turnId(runId, 1), text: "so far" },
  { type: "turn.settled", runId, turnId: turnId(runId, 1), outcome: completed, next: "end", text: "all of it" },
  settled(runId),
];

export const batch = (
  session: SessionId,
  expected: Seq,
  events: readonly Event[],
  more: Partial<Pick<Batch, "at" | "epoch" | "snapshot" | "memos" | "unless">> = {},
): Batch => ({ session, expected, events, at: 1_000, ...more });

/** Appends, and fails unless that succeeded. Returns the new head. */
export async function add(store: Store, session: SessionId, expected: Seq, events: readonly Event[]): Promise<Seq> {
  const answer = await store.append(batch(session, expected, events));
  expect(answer).toEqual({ kind: "appended", head: expected + events.length });
  return expected + events.length;
}

export const fold = (session: SessionId, events: readonly Event[]): Lane => events.reduce(evolve, emptyLane(session));

/** The head as readers see it. */
export async function headOf(store: Store, session: SessionId): Promise<Seq> {
  return (await store.load(session))?.head ?? 0;
}

export async function refusedAs(code: ControlCode, pending: Promise<unknown>): Promise<void> {
  await expect(pending).rejects.toMatchObject({ name: "ControlError", code });
}
