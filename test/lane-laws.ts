// What must hold for every lane and every command, whatever they are. Used by the table and by the random histories.
import assert from "node:assert/strict";
import type { CancelReceipt, SessionReceipt } from "../src/core/cancel.ts";
import type { Accepted, Answers, Command } from "../src/core/command.ts";
import { decide } from "../src/core/decide.ts";
import { demand } from "../src/core/demand.ts";
import type { Event } from "../src/core/event.ts";
import type { RunId, Work } from "../src/core/ids.ts";
import { evolve, type Lane } from "../src/core/lane.ts";
import { CALLS_LIVE_MAX, QUESTIONS_OPEN_MAX, QUEUE_BYTES_MAX, QUEUE_RUNS_MAX } from "../src/core/limits.ts";
import type { Run } from "../src/core/run.ts";
import { checkBackground, checkProcessAnswer, checkProcesses, checkProcessFact, untold } from "./process-laws.ts";

export interface Step {
  readonly lane: Lane;
  readonly events: readonly Event[];
}

/** Decides and folds one command, and checks every law on the way. */
export function lawfulStep(before: Lane, command: Command): Step {
  freeze(before);
  freeze(command);
  const { events, answer } = decide(before, command);
  assert.deepEqual(decide(before, command), { events, answer }, "the same question has the same answer");

  let lane = before;
  for (const event of events) {
    checkFact(lane, event, events);
    checkSaid(lane, event);
    checkProcessFact(lane, event);
    const next = freeze(evolve(lane, event));
    assert.equal(next.head, lane.head + 1, "each fact moves the head by one");
    lane = next;
  }
  checkLane(lane);
  checkProcesses(lane);
  checkConservation(before, lane, events);
  checkAnswer({ before, after: lane, command, events, answer });
  return { lane, events };
}

/** May this fact follow here? */
function checkFact(lane: Lane, event: Event, batch: readonly Event[]): void {
  const { live } = lane;
  switch (event.type) {
    case "run.started":
      assert.equal(live, undefined, "G4: nothing starts while something is live");
      assert.equal(lane.queue[0]?.id, event.runId, "G4: the next one starts");
      return;
    case "run.settled":
      assert.ok(standing(lane).includes(event.runId), `G14: ${event.runId} is settled once, while it stands`);
      if (live?.id !== event.runId) return;
      assert.ok(ownsNothing(live), "a run may not settle while it owns anything");
      assert.equal(live.questions.length, 0, "G9: no question outlives its run");
      assert.equal(
        event.outcome.kind === "cancelled",
        live.phase === "stopping",
        "G15: cancelled if and only if asked",
      );
      return;
    case "turn.requested":
      assert.ok(live !== undefined && live.phase === "running" && ownsNothing(live), "G11: no turn begins here");
      return;
    case "call.requested":
      assert.ok(
        live?.phase === "running" && (live.turn !== undefined || batch.some((one) => one.type === "turn.settled")),
        "G11: no call begins here",
      );
      assert.ok(!live.live.some((call) => call.id === event.callId), "a call is requested once");
      return;
    case "turn.settled":
      assert.equal(live?.turn, event.turnId, "only what is going on settles");
      return;
    case "call.settled":
    case "call.cancel_requested":
      assert.ok(
        live?.live.some((call) => call.id === event.callId),
        "only what is going on settles or is stopped",
      );
      return;
    case "run.cancel_requested":
      assert.ok(live?.id === event.runId && live.phase !== "stopping", "the first reason wins");
      return;
    default:
      return;
  }
}

/** May this be asked, answered or said here? */
function checkSaid(lane: Lane, event: Event): void {
  const { live } = lane;
  switch (event.type) {
    case "question.asked":
      assert.ok(live?.phase === "running" && goesOn(live).includes(event.owner), "G11: nothing is asked here");
      assert.ok(!live.questions.some((one) => one.id === event.questionId), "a question is asked once");
      return;
    case "question.settled":
      assert.ok(
        live?.questions.some((one) => one.id === event.questionId),
        "only what is open is answered",
      );
      return;
    case "inbox.taken":
      assert.deepEqual(event.items, untold(lane), "what is taken is what is there, and nobody else is about to tell");
      assert.ok(live?.phase === "running", "a turn that may not begin takes nothing");
      return;
    case "session.compacted":
      assert.ok(live?.phase === "running" && live.turn === event.turnId, "the live turn sums up");
      return;
    default:
      return;
  }
}

function goesOn(run: Run): readonly Work[] {
  const calls = run.live.filter((call) => call.phase === "running").map((call) => call.id);
  return run.turn === undefined ? calls : [run.turn, ...calls];
}

function checkQuestions(live: Run): void {
  assert.ok(live.questions.length <= QUESTIONS_OPEN_MAX, "G33: open questions are bounded");
  const askers = live.phase === "running" || live.phase === "parked" ? goesOn(live) : [];
  for (const { id, owner } of live.questions) assert.ok(askers.includes(owner), `G9: ${id} outlives ${owner}`);
  assert.equal(new Set(live.questions.map((one) => one.id)).size, live.questions.length);
}

function checkLane(lane: Lane): void {
  const ids = standing(lane);
  assert.equal(new Set(ids).size, ids.length, "a run is in exactly one place");
  assert.ok(lane.queue.length + lane.steers.length <= QUEUE_RUNS_MAX, "G33: the queue is bounded");
  const bytes = [...lane.queue, ...lane.steers].reduce((sum, run) => sum + run.bytes, 0);
  assert.ok(bytes <= QUEUE_BYTES_MAX, "G33: the queue is bounded in bytes");
  if (lane.phase !== "open")
    assert.equal(lane.queue.length + lane.steers.length, 0, "nothing waits in a closed session");
  if (lane.live === undefined) {
    assert.equal(lane.steers.length, 0, "G5: steers wait for a live run only");
    return;
  }
  const { live } = lane;
  checkQuestions(live);
  if (live.phase === "parked") {
    assert.equal(live.turn, undefined, "a parked run has no turn");
    assert.ok(
      live.live.every((call) => call.byEnd === true && call.phase === "running"),
      "it keeps what can be begun",
    );
    assert.deepEqual(demand(live), [], "nothing of it is going on");
    return;
  }
  assert.ok(!ownsNothing(live), "a live run owns something, unless it is parked");
  assert.ok(live.live.length <= CALLS_LIVE_MAX, "G33: live calls are bounded");
  const owned = [...(live.turn === undefined ? [] : [live.turn]), ...live.live.map((call) => call.id)];
  const effects = demand(live);
  assert.deepEqual(
    effects.map((effect) => effect.work).toSorted(),
    owned.toSorted(),
    "what is owned is demanded, once",
  );
  if (live.phase !== "running")
    assert.ok(
      effects.every((effect) => effect.type === "stop"),
      "G11: nothing begins",
    );
}

/** Runs come by being accepted and go by being settled, and in no other way. */
function checkConservation(before: Lane, after: Lane, events: readonly Event[]): void {
  const expected = new Set(standing(before));
  for (const event of events) {
    if (event.type === "run.accepted") expected.add(event.runId);
    if (event.type === "run.settled") expected.delete(event.runId);
  }
  assert.deepEqual(standing(after).toSorted(), [...expected].toSorted(), "no run comes or goes unrecorded");
}

interface Asked {
  readonly before: Lane;
  readonly after: Lane;
  readonly command: Command;
  readonly events: readonly Event[];
  readonly answer: Answers[Command["type"]];
}

function checkAnswer(asked: Asked): void {
  const { answer, events, before, command } = asked;
  switch (command.type) {
    case "cancel-session":
    case "close":
      checkSessionReceipt(asked, answer as SessionReceipt);
      return;
    case "cancel-run":
    case "cancel-key":
    case "cancel-call":
    case "cancel-process":
      checkCancelReceipt(asked, answer as CancelReceipt);
      return;
    case "settle-turn":
    case "settle-call":
    case "detach-process":
    case "settle-process":
      assert.equal(answer, events.length === 0 ? "late" : "recorded");
      return;
    case "start":
      assert.equal(answer, events.length === 0 ? undefined : before.queue[0]?.id);
      return;
    case "take":
      assert.deepEqual(
        (answer as Answers["take"]).map((one) => one.runId),
        events.flatMap((event) => (event.type === "run.taken" ? [event.runId] : [])),
      );
      return;
    case "cancel-question":
    case "answer":
    case "ask":
    case "post":
      checkAsked(asked, answer as Answers["cancel-question" | "answer" | "ask" | "post"]);
      return;
    case "set-mode":
      checkMode(asked, answer as Answers["set-mode"]);
      return;
    case "begin-process":
      checkProcessAnswer(asked.after, events, answer as Answers["begin-process"]);
      return;
    case "extend":
    case "compact":
    case "expire":
    case "note-process":
    case "recover":
    case "park":
      assert.equal(answer, undefined);
      return;
    default:
      checkReceipt(asked, answer as Exclude<Answers["create" | "accept" | "edit" | "call"], undefined>);
  }
}

function checkMode({ before, after, events }: Asked, receipt: Answers["set-mode"]): void {
  if (receipt.kind !== "changed") {
    assert.equal(events.length, 0, "G3: nothing happened");
    if (receipt.kind === "unchanged") assert.equal(before.mode, receipt.mode);
    return;
  }
  assert.equal(receipt.seq, before.head + 1);
  assert.deepEqual([before.phase, after.mode], ["open", receipt.mode]);
  assert.deepEqual({ ...after, head: before.head, mode: before.mode }, before, "a mode changes nothing else");
}

function checkAsked({ before, after, events }: Asked, { kind, ...rest }: { readonly kind: string }): void {
  const types = events.map((event) => event.type);
  switch (kind) {
    case "asked":
      assert.ok(after.live?.questions.some((one) => "questionId" in rest && one.id === rest.questionId));
      // An approval for an input that has changed since is withdrawn before the new one is asked for.
      assert.ok(/^((question\.settled,)*question\.asked)?$/.test(types.join()), "asked once");
      return;
    case "recorded":
      // One, or with an approval for the session all of its scope.
      assert.match(types.join(), /^question\.settled(,question\.settled)*$/);
      return;
    case "withdrawn":
      assert.ok(types.includes("question.settled"), "it is not open any more");
      return;
    case "posted":
      assert.deepEqual(rest, { seq: before.head + 1 });
      assert.deepEqual(types, ["inbox.added"]);
      return;
    default:
      assert.ok(["refused", "unknown", "granted"].includes(kind), kind);
      assert.equal(events.length, 0, "G3: nothing happened");
  }
}

function checkReceipt({ before, after, events }: Asked, answer: Answers["create" | "accept" | "edit" | "call"]): void {
  switch (answer.kind) {
    case "created":
    case "changed":
      assert.equal(answer.seq, before.head + 1, "the receipt says where the change stands");
      assert.notEqual(events.length, 0);
      return;
    case "called":
      assert.ok(after.live?.live.some((call) => call.id === answer.callId));
      return;
    case "accepted":
      checkAccepted(after, answer);
      assert.equal(events.length === 0, answer.repeated, "G2: a repeated request records nothing");
      return;
    case "refused":
      assert.match(answer.message, /^\S.*\.$/);
      assert.equal(events.length, 0, "G3: refused means nothing happened");
      return;
    default:
      assert.ok(["existed", "unchanged", "started", "unknown"].includes(answer.kind), answer.kind);
      assert.equal(events.length, 0);
  }
}

function checkAccepted(after: Lane, { runId, seq, joined, ahead }: Accepted): void {
  const live = after.live === undefined ? 0 : 1;
  const place = after.queue.findIndex((run) => run.id === runId);
  const run = [...after.queue, ...after.steers].find((one) => one.id === runId);
  if (run !== undefined) {
    assert.equal(seq, run.acceptedAt, "the receipt says where it was accepted");
    assert.equal(joined, place === -1 ? "steer" : "queue", "the receipt says how it joined");
    assert.equal(ahead, place === -1 ? live : place + live, "the receipt counts what is before it");
  } else {
    assert.equal(ahead, 0, "nothing is before a run that is live or over");
  }
}

function checkCancelReceipt({ before, events }: Asked, receipt: CancelReceipt): void {
  switch (receipt.kind) {
    case "stopping": {
      const requested = events.findIndex((event) => event.type.endsWith(".cancel_requested"));
      assert.equal(receipt.first, requested !== -1, "G10: the first request is the one that is recorded");
      if (receipt.first) assert.equal(receipt.since, before.head + requested + 1, "the receipt says since when");
      else assert.ok(receipt.since <= before.head && events.length === 0, "a second cancel writes nothing");
      return;
    }
    case "withdrawn":
      // The last of the queue may have stood in the way of a run that something in the inbox wants.
      assert.match(events.map((event) => event.type).join(), /^run\.settled(,run\.accepted)?$/);
      return;
    default:
      assert.equal(receipt.kind, "unknown", "what has settled has left the state");
      assert.equal(events.length, 0);
  }
}

function checkSessionReceipt({ before, after, events }: Asked, receipt: SessionReceipt): void {
  const covered = standing(before);
  assert.deepEqual(
    receipt.runs.map((one) => one.runId).toSorted(),
    covered.toSorted(),
    "G7: whoever stood is answered",
  );
  assert.equal(after.queue.length + after.steers.length, 0, "G8: nobody waits any more");
  if (after.live !== undefined) assert.equal(after.live.phase, "stopping", "G7: the live run is covered");
  const stops = checkBackground({ before, after, events }, receipt);
  if (covered.length === 0 && !stops) assert.ok(receipt.kind === "idle" || receipt.kind === "unknown");
  else assert.equal(receipt.kind, before.live === undefined && !stops ? "withdrawn" : "stopping");
  assert.ok(events.length === 0 || !after.inbox.some((one) => one.wake) || after.phase === "closed", "nothing wakes");
  const fresh = covered.filter((id) => !(before.live?.id === id && before.live.phase === "stopping"));
  const requested = events.flatMap((event) => (event.type === "session.cancel_requested" ? [...event.covers] : []));
  assert.deepEqual(
    requested.toSorted(),
    fresh.toSorted(),
    "G7: it names whom it covers, and whoever was covered is not",
  );
  for (const { runId, receipt: one } of receipt.runs) {
    if (before.live?.id !== runId) assert.deepEqual(one, { kind: "withdrawn" });
    else if (one.kind === "stopping" && one.first) {
      const at = events.findIndex((event) => event.type === "run.cancel_requested");
      assert.equal(one.since, before.head + at + 1, "the receipt says since when");
    } else assert.ok(one.kind === "stopping" && before.live.phase === "stopping");
  }
}

function standing(lane: Lane): readonly RunId[] {
  const waiting = [...lane.queue, ...lane.steers].map((run) => run.id);
  return lane.live === undefined ? waiting : [lane.live.id, ...waiting];
}

/** A core that changed its input would be found here. */
function freeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) freeze(part);
  }
  return value;
}

const ownsNothing = (run: Run): boolean => run.turn === undefined && run.live.length === 0;
