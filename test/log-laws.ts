// What must hold for the log of a session, whoever wrote it and however it came about.
import assert from "node:assert/strict";
import type { CancelReason, Outcome } from "../src/core/cancel.ts";
import type { Event } from "../src/core/event.ts";
import type { CallId, ProcessId, RunId, SessionId } from "../src/core/ids.ts";
import { type Message, transcript } from "../src/core/transcript.ts";

/** G4, G7, G8, G14, G15, G16, G17, G19 and G22, on a log in which everything has come to its end. */
export function checkLog(events: readonly Event[]): void {
  const runs = settledOnce(events);
  oneAtATime(events);
  coversThePast(events, runs);
  noOrphans(events);
  toldOnce(events);
  validTranscript(events);
}

interface Life {
  readonly acceptedAt: number;
  readonly settledAt: number;
  readonly outcome: Outcome;
}

/** G8, G14, G16: every run has exactly one outcome, and it is the last that is heard of it. */
function settledOnce(events: readonly Event[]): ReadonlyMap<RunId, Life> {
  const accepted = new Map<RunId, number>();
  const lives = new Map<RunId, Life>();
  for (const [at, event] of events.entries()) {
    if (!("runId" in event)) continue;
    const { runId } = event;
    // Being sent back to the queue, or not, is told of steers; their run may be over by then.
    assert.ok(!lives.has(runId), `G16: ${event.type} of ${runId} after its outcome`);
    const acceptedAt = accepted.get(runId);
    if (event.type === "run.accepted") {
      assert.equal(acceptedAt, undefined, `G2: ${runId} is accepted once`);
      accepted.set(runId, at);
    } else {
      assert.ok(acceptedAt !== undefined, `${event.type} of ${runId}, which was never accepted`);
      if (event.type === "run.settled") lives.set(runId, { acceptedAt, settledAt: at, outcome: event.outcome });
    }
  }
  assert.deepEqual(
    [...accepted.keys()].filter((id) => !lives.has(id)),
    [],
    "G8: every run has an outcome",
  );
  return lives;
}

/** G4: between a start and its outcome, no other start. */
function oneAtATime(events: readonly Event[]): void {
  let live: RunId | undefined;
  for (const event of events) {
    if (event.type === "run.started") {
      assert.equal(live, undefined, `G4: ${event.runId} started while ${live} was live`);
      live = event.runId;
    }
    if (event.type === "run.settled" && event.runId === live) live = undefined;
    if (/^(turn|call|question)\.|^inbox\.taken$/.test(event.type)) {
      assert.equal("runId" in event ? event.runId : undefined, live, `G4: ${event.type} of a run that is not live`);
    }
  }
}

/** G7, G15: a cancel reaches every run accepted before it that had not ended, and no other. */
function coversThePast(events: readonly Event[], lives: ReadonlyMap<RunId, Life>): void {
  const reasons = new Map<RunId, CancelReason>();
  for (const [at, event] of events.entries()) {
    if (event.type === "run.cancel_requested") {
      assert.ok(!reasons.has(event.runId), "the first reason wins");
      reasons.set(event.runId, event.reason);
    }
    if (event.type !== "session.cancel_requested") continue;
    const unsettled = [...lives].filter(([, life]) => life.acceptedAt < at && life.settledAt > at).map(([id]) => id);
    for (const id of unsettled) {
      const { outcome } = lives.get(id) ?? {};
      assert.equal(outcome?.kind, "cancelled", `G7: ${id} was accepted before a cancel of its session`);
      if (event.covers.includes(id)) assert.deepEqual(outcome?.reason, event.reason, "G10: the first reason is kept");
      else assert.ok(reasons.has(id), "G7: whoever is not covered was being stopped already");
    }
    assert.ok(
      event.covers.every((id) => unsettled.includes(id)),
      "G7: it covers nobody else",
    );
  }
  const started = new Set(events.flatMap((event) => (event.type === "run.started" ? [event.runId] : [])));
  for (const [id, { outcome }] of lives) {
    if (!started.has(id)) continue;
    assert.equal(
      outcome.kind === "cancelled",
      reasons.has(id),
      `G15: ${id} is cancelled if and only if that was asked`,
    );
    if (outcome.kind === "cancelled") assert.deepEqual(outcome.reason, reasons.get(id));
  }
}

/** G19: every process ends once, and before what it belongs to. */
function noOrphans(events: readonly Event[]): void {
  const owners = new Map<ProcessId, CallId | SessionId>();
  const begun = new Set<ProcessId>();
  for (const event of events) {
    if (event.type === "process.requested") {
      assert.ok(!begun.has(event.processId), `${event.processId} begins once`);
      begun.add(event.processId);
    }
    if (event.type === "process.requested" || event.type === "process.detached") {
      owners.set(event.processId, event.owner);
    }
    if (event.type === "process.settled") assert.ok(owners.delete(event.processId), "G14: it ends once");
    if (event.type === "call.settled") {
      assert.ok(![...owners.values()].includes(event.callId), `G19: a process of ${event.callId} outlives it`);
    }
  }
  assert.deepEqual([...owners.keys()], [], "G19: every process has ended");
}

/** G22: what a background process had to tell is put into the inbox once, and told once at most. */
function toldOnce(events: readonly Event[]): void {
  const fed = events.flatMap((event) => (event.type === "inbox.added" ? (event.processId ?? []) : []));
  assert.equal(new Set(fed).size, fed.length, "G22: a result is fed once");
  const waiting = new Map<string, ProcessId>();
  const told = new Set<ProcessId>();
  for (const event of events) {
    if (event.type === "inbox.added" && event.processId !== undefined) {
      waiting.set(JSON.stringify(event.item), event.processId);
    }
    const heard = event.type === "call.settled" ? (event.heard ?? []) : [];
    const taken = event.type === "inbox.taken" ? event.items.map((item) => waiting.get(JSON.stringify(item))) : [];
    for (const id of taken) {
      if (id === undefined) continue;
      assert.ok(!told.has(id), `G22: a turn is told of ${id}, which was told before`);
      told.add(id);
    }
    for (const id of heard) told.add(id);
  }
}

/** G17: for people and for the next request to a model alike. */
export function validTranscript(events: readonly Event[]): void {
  const messages = transcript(events);
  const taken = new Set(events.flatMap((event) => (event.type === "run.taken" ? [event.runId] : [])));
  const settled = events.flatMap((event) => (event.type === "run.settled" ? [event.runId] : []));
  for (const runId of settled) {
    const own = messages.filter((message) => message.runId === runId);
    assert.equal(own.filter((message) => message.role === "user").length, 1, `G17: ${runId} has one user message`);
    assert.equal(own[0]?.role, "user", `G17: ${runId} begins with its user message`);
    const answers = own.filter((message) => message.role === "assistant");
    if (taken.has(runId)) assert.equal(answers.length, 0, "a steer is answered by the run that took it in");
    else assert.ok(answers.length > 0, `G17: ${runId} has an assistant message`);
    assert.ok(
      answers.every((message) => message.finish.kind !== "live"),
      `G17: ${runId} has a finish`,
    );
  }
  for (const [at, message] of messages.entries()) oneResultPerCall(message, messages[at + 1]);
  assert.deepEqual(
    messages.flatMap((message) => (message.role === "note" ? [message.item] : [])),
    events.flatMap((event) => (event.type === "inbox.taken" ? event.items : [])),
    "G22: what was taken from the inbox is in the conversation, once",
  );
}

function oneResultPerCall(message: Message, next: Message | undefined): void {
  if (message.role === "tool") return;
  const asked = message.role === "assistant" ? message.calls.map((call) => call.callId) : [];
  const told = next?.role === "tool" ? next.results.map((result) => result.callId) : [];
  assert.deepEqual(told, asked, "G17: every call has exactly one result, before anything else is said");
  assert.equal(new Set(asked).size, asked.length, "G17: a call is asked for once");
}
