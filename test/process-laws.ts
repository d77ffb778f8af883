// What must hold for the processes of every lane, and for what they have to tell, whatever is asked of it.
import assert from "node:assert/strict";
import type { SessionReceipt } from "../src/core/cancel.ts";
import type { Answers } from "../src/core/command.ts";
import { demandStops } from "../src/core/decide-process.ts";
import type { Event } from "../src/core/event.ts";
import { type CallId, type ProcessId, wakeRunId } from "../src/core/ids.ts";
import type { Item } from "../src/core/inbox.ts";
import type { Lane } from "../src/core/lane.ts";
import { PROCESSES_LIVE_MAX } from "../src/core/limits.ts";
import type { Process } from "../src/core/process.ts";

/** What is in the inbox and nobody is about to tell. */
export function untold({ inbox, live }: Lane): readonly Item[] {
  const calls = new Set<string | undefined>(live?.live.map((call) => call.id));
  return inbox.filter((one) => !calls.has(one.heldBy)).map((one) => one.item);
}

/** May this fact follow here? */
export function checkProcessFact(lane: Lane, event: Event): void {
  switch (event.type) {
    case "process.requested":
      assert.equal(lane.phase, "open", "G3: nothing begins in a session that is not open");
      assert.ok(event.owner === lane.id || goesOn(lane, event.owner), "G11: no process begins here");
      assert.equal(find(lane, event.processId), undefined, "a process begins once");
      return;
    case "process.started":
    case "process.settled":
      assert.ok(find(lane, event.processId) !== undefined, "only what is going on starts or settles");
      return;
    case "process.detached":
      assert.ok(
        find(lane, event.processId) !== undefined && !stops(lane, event.processId),
        "G9: it ends with its call",
      );
      return;
    case "process.cancel_requested":
      assert.equal(find(lane, event.processId)?.phase, "running", "G10: the first reason wins");
      return;
    case "call.settled":
      assert.ok(!lane.processes.live.some((one) => one.owner === event.callId), "G19: no process outlives its call");
      return;
    case "run.recovered":
      assert.deepEqual(lane.processes.live, [], "G20: what another worker has left has ended");
      return;
    case "run.accepted":
      checkWake(lane, event);
      return;
    default:
      return;
  }
}

function checkWake(lane: Lane, { runId, wake }: Extract<Event, { type: "run.accepted" }>): void {
  if (wake !== true) return;
  assert.ok(rests(lane) && lane.inbox.some((one) => one.wake), "a run begins by itself only for what wants one");
  assert.equal(runId, wakeRunId(lane.id, lane.head + 1), "it is named after its place in the log");
}

const rests = ({ phase, live, queue, steers }: Lane): boolean =>
  phase === "open" && live === undefined && queue.length === 0 && steers.length === 0;

/** What holds whenever nobody is in the middle of saying something. */
export function checkProcesses(lane: Lane): void {
  const { live, count } = lane.processes;
  assert.ok(live.length <= PROCESSES_LIVE_MAX && live.length <= count, "G33: processes are bounded");
  assert.equal(new Set(live.map((one) => one.id)).size, live.length, "G10: an id names one process");
  const calls = new Set<CallId>(lane.live?.live.map((call) => call.id));
  for (const { id, owner } of live) {
    assert.ok(owner === lane.id || calls.has(owner as CallId), `G19: ${id} belongs to ${owner}, which is over`);
    if (lane.phase === "closed") assert.ok(stops(lane, id), `G9: ${id} goes on although its session is closed`);
  }
  if (rests(lane)) assert.ok(!lane.inbox.some((one) => one.wake), "G22: what wants a run has got one");
}

export function checkProcessAnswer(after: Lane, events: readonly Event[], answer: Answers["begin-process"]): void {
  if (answer.kind === "begun") {
    assert.deepEqual(
      events.map((event) => event.type),
      ["process.requested"],
    );
    assert.equal(after.processes.live.at(-1)?.id, answer.processId);
    return;
  }
  assert.match(answer.message, /^\S.*\.$/);
  assert.equal(events.length, 0, "G3: refused means nothing happened");
}

interface Step {
  readonly before: Lane;
  readonly after: Lane;
  readonly events: readonly Event[];
}

/** Whether a cancel of the session stops anything in the background; it stops all of it or nothing. */
export function checkBackground({ before, after, events }: Step, receipt: SessionReceipt): boolean {
  const told = "processes" in receipt ? (receipt.processes ?? []) : [];
  if (told.length === 0) {
    assert.ok(!events.some((event) => event.type === "process.cancel_requested"), "G10: what is stopped is named");
    return false;
  }
  const background = before.processes.live.filter((one) => one.owner === before.id);
  assert.deepEqual(
    told.map((one) => one.processId),
    background.map((one) => one.id),
    "G7: whatever went on in the background is answered",
  );
  for (const { processId, receipt: one } of told) {
    assert.ok(one.kind === "stopping", "what goes on is stopped");
    assert.equal(
      one.first,
      find(before, processId)?.phase === "running",
      "G10: the first request is the one that counts",
    );
    const at = events.findIndex((event) => event.type === "process.cancel_requested" && event.processId === processId);
    if (one.first) assert.equal(one.since, before.head + at + 1, "the receipt says since when");
    else assert.ok(at === -1 && one.since <= before.head, "a second cancel writes nothing");
    assert.equal(find(after, processId)?.phase, "stopping", "G9: it is being stopped");
  }
  return true;
}

function goesOn({ live }: Lane, id: string): boolean {
  return live?.phase === "running" && live.live.some((call) => call.id === id && call.phase === "running");
}

const find = (lane: Lane, id: ProcessId): Process | undefined => lane.processes.live.find((one) => one.id === id);
const stops = (lane: Lane, id: ProcessId): boolean => demandStops(lane).some((one) => one.id === id);
