// A session's lane as its log tells it: who is live, who waits, who is next.
//
// Invariants
// 1. At most one live run.
// 2. A run is in exactly one place: queue, steers, live; or it has settled and is in none.
// 3. Bounded: settled runs leave the state, so it does not grow with the log.
import { Bug } from "../bug.ts";
import { ANSWERS_KEPT, GRANTS_KEPT } from "../limits.ts";
import type { Event } from "./event.ts";
import type { RunId, Seq, SessionId } from "./ids.ts";
import { isHeld, NO_ITEMS, type PendingItem } from "./inbox.ts";
import { type MemoSet, NO_MEMOS } from "./memo-set.ts";
import { evolveProcesses, NO_PROCESSES, type Processes, quieted } from "./process.ts";
import { type Delivery, type Json, type Prompt, promptBytes } from "./prompt.ts";
import { evolveRun, NO_QUESTIONS, NOTHING_SPENT, NOTHING_TAKEN, type Run } from "./run.ts";

/** A run that has not begun. */
export interface Waiting {
  readonly id: RunId;
  readonly prompt: Prompt;
  readonly delivery: Delivery;
  readonly acceptedAt: Seq;
  readonly key: string | undefined;
  readonly content: string | undefined;
  /** What it counts against the queue's limit. */
  readonly bytes: number;
}

export interface Lane {
  readonly id: SessionId;
  /** `absent`: the log is empty, nobody has created the session. */
  readonly phase: "absent" | "open" | "closed";
  readonly head: Seq;
  /** The directory it works in; undefined: that of the host. */
  readonly cwd: string | undefined;
  /** The mode somebody has set; undefined: nobody has, and that of its agent holds. */
  readonly mode: string | undefined;
  readonly live: Run | undefined;
  /** Next first. */
  readonly queue: readonly Waiting[];
  /** Waiting to be taken into the live run, oldest first. */
  readonly steers: readonly Waiting[];
  /** The latest requests that carried an idempotency key, with their answers. */
  readonly answered: readonly Answered[];
  /** What the model is to hear at its next turn, oldest first. */
  readonly inbox: readonly PendingItem[];
  /** What people have approved for the whole session. */
  readonly grants: readonly string[];
  readonly processes: Processes;
  /** What is kept besides the log, oldest first. Not part of a snapshot. */
  readonly memos: MemoSet;
  /**
   * Where the log must be read from for the next request to a model: what was asked before is in the last summary.
   * Without a summary, from its beginning. 0: not known, in a session that an earlier version has stored.
   */
  readonly contextFrom: Seq;
}

export interface Answered {
  readonly key: string;
  readonly content: string;
  readonly answer: Json;
}

export function emptyLane(id: SessionId): Lane {
  const unset = { cwd: undefined, mode: undefined, live: undefined };
  const nothing = { queue: NONE, steers: NONE, answered: NO_ANSWERS, inbox: NO_ITEMS, grants: NO_GRANTS };
  return {
    id,
    phase: "absent",
    head: 0,
    ...unset,
    ...nothing,
    processes: NO_PROCESSES,
    memos: NO_MEMOS,
    contextFrom: 1,
  };
}

/** What the log says happened next. Trusts the log; a log that contradicts itself is a bug, not a case. */
export function evolve(lane: Lane, event: Event): Lane {
  const head = lane.head + 1;
  switch (event.type) {
    case "session.created":
      return { ...lane, head, phase: "open", cwd: event.cwd };
    case "session.mode_set":
      return { ...lane, head, mode: event.mode };
    case "session.compacted":
      return { ...lane, head, contextFrom: contextFrom(lane) }; // @fault inbox-lost-at-compaction
    case "session.cancel_requested": // Also of what would have begun by itself. It is still told, at the next turn.
      return { ...woken(lane), head, processes: quieted(lane.processes) }; // @fault woken-after-the-cancel
    case "inbox.added":
      return { ...lane, head, inbox: [...lane.inbox, waits(event)] };
    case "inbox.taken":
      // @fault heard-at-every-turn
      return { ...lane, head, inbox: left(lane.inbox, (one) => isHeld(one, lane.live)) };
    case "session.closed":
      return { ...lane, head, phase: "closed" };
    case "request.answered":
      return { ...lane, head, answered: [...lane.answered.slice(1 - ANSWERS_KEPT), answered(event)] };
    case "run.accepted":
      // @fault woken-twice
      return accept({ ...(event.wake === true ? woken(lane) : lane), head }, waiting(event, head));
    case "run.edited":
      return { ...lane, head, queue: edited(lane.queue, event), steers: edited(lane.steers, event) };
    case "run.moved": // @fault move-loses-an-entry
      return {
        ...lane,
        head,
        queue: insertAt(without(lane.queue, event.runId), event.index, find(lane.queue, event.runId)),
      };
    case "run.steered":
      return {
        ...lane,
        head,
        queue: without(lane.queue, event.runId),
        // In the order of acceptance, not in which they became steers.
        steers: byAcceptance(lane.steers, find(lane.queue, event.runId)),
      };
    case "run.requeued":
      return {
        ...lane,
        head,
        steers: without(lane.steers, event.runId),
        queue: byAcceptance(lane.queue, find(lane.steers, event.runId)),
      };
    case "run.taken":
      return { ...lane, head, live: take(liveRun(lane, event.into), find(lane.steers, event.runId).prompt) };
    case "run.started":
      return { ...lane, head, queue: without(lane.queue, event.runId), live: started(find(lane.queue, event.runId)) };
    case "run.settled":
      return settle({ ...lane, head }, event.runId);
    case "question.settled":
      return { ...grant(lane, event), head, live: evolveRun(liveRun(lane, event.runId), event, head) };
    case "turn.settled":
    case "call.settled":
      return { ...hear(lane, event), head, live: evolveRun(liveRun(lane, event.runId), event, head) };
    case "process.requested":
    case "process.started":
    case "process.detached":
    case "process.cancel_requested":
    case "process.settled":
      return { ...lane, head, processes: evolveProcesses(lane.processes, event, head) };
    default:
      return { ...lane, head, live: evolveRun(liveRun(lane, event.runId), event, head) };
  }
}

/** From the oldest prompt that is not over: the run that makes the summary, and those that wait behind it. */
function contextFrom({ head, live, queue, steers }: Lane): Seq {
  const open = [...(live === undefined ? [] : [live]), ...queue, ...steers];
  return open.reduce((from, { acceptedAt }) => Math.min(from, acceptedAt), head + 1); // @fault queued-prompt-not-read
}

function accept(lane: Lane, run: Waiting): Lane {
  switch (placeFor(lane, run.delivery)) {
    case "steers":
      return { ...lane, steers: [...lane.steers, run] };
    case "front":
      return { ...lane, queue: insertAt(lane.queue, leadingInterrupts(lane.queue), run) };
    case "back":
      return { ...lane, queue: [...lane.queue, run] };
  }
}

/** Where an accepted prompt goes. A steer needs a run that will have another turn. */
export function placeFor(lane: Lane, delivery: Delivery): "steers" | "front" | "back" {
  if (delivery === "steer" && lane.live?.phase === "running") return "steers";
  return delivery === "interrupt" ? "front" : "back"; // @fault interrupt-at-the-tail
}

/** Interrupts go before the queue, and keep their order among themselves. */
export function leadingInterrupts(queue: readonly Waiting[]): number {
  const first = queue.findIndex((run) => run.delivery !== "interrupt");
  return first === -1 ? queue.length : first;
}

function settle(lane: Lane, id: RunId): Lane {
  if (lane.live?.id === id) return { ...lane, live: undefined }; // @fault inbox-lost-with-the-run
  return { ...lane, queue: without(lane.queue, id), steers: without(lane.steers, id) };
}

function started(run: Waiting): Run {
  return {
    phase: "running",
    id: run.id,
    prompt: run.prompt,
    acceptedAt: run.acceptedAt,
    key: run.key,
    content: run.content,
    attempt: 1,
    recoveries: 0,
    taken: NOTHING_TAKEN,
    turns: 0,
    calls: 0,
    textChars: 0,
    last: undefined,
    turn: undefined,
    live: [],
    questions: NO_QUESTIONS,
    asked: 0,
    spent: NOTHING_SPENT,
    meter: undefined,
    model: undefined,
  };
}

/** An approval for the whole session is remembered by what it covers. */
function grant(lane: Lane, { questionId, ending }: Extract<Event, { type: "question.settled" }>): Lane {
  if (ending.kind !== "allowed" || ending.remember !== "session") return lane;
  const about = lane.live?.questions.find((one) => one.id === questionId)?.about;
  if (about?.kind !== "approval" || lane.grants.includes(about.scope)) return lane;
  return { ...lane, grants: [...lane.grants.slice(1 - GRANTS_KEPT), about.scope] };
}

const waits = ({ type: _, ...entry }: Extract<Event, { type: "inbox.added" }>): PendingItem => entry;

/** A run is begun for what is in the inbox: what wanted one has got it. */
function woken(lane: Lane): Lane {
  if (!lane.inbox.some(({ wake }) => wake === true)) return lane;
  return { ...lane, inbox: lane.inbox.map(({ wake: _, ...entry }) => entry) };
}

/** What a call or a turn has received is not given to another turn. */
function hear(lane: Lane, { heard }: Extract<Event, { type: "call.settled" | "turn.settled" }>): Lane {
  if (heard === undefined) return lane;
  const told = ({ processId }: PendingItem): boolean => processId !== undefined && heard.includes(processId);
  return { ...lane, inbox: left(lane.inbox, (one) => !told(one)) }; // @fault heard-and-told-again
}

function left(inbox: readonly PendingItem[], stays: (one: PendingItem) => boolean): readonly PendingItem[] {
  const rest = inbox.filter(stays);
  return rest.length === 0 ? NO_ITEMS : rest;
}

function waiting(event: Extract<Event, { type: "run.accepted" }>, acceptedAt: Seq): Waiting {
  const { runId: id, prompt, delivery, key, content } = event;
  return { id, prompt, delivery, acceptedAt, key, content, bytes: promptBytes(prompt) };
}

function edited(runs: readonly Waiting[], { runId, prompt }: Extract<Event, { type: "run.edited" }>) {
  if (!runs.some((run) => run.id === runId)) return runs;
  return runs.map((run) => (run.id === runId ? { ...run, prompt, bytes: promptBytes(prompt) } : run));
}

const take = (run: Run, steer: Prompt): Run => ({ ...run, taken: [...run.taken, steer] });

function liveRun(lane: Lane, id: RunId): Run {
  if (lane.live?.id !== id) throw new Bug(`${id} is not live in ${lane.id}`);
  return lane.live;
}

function find(runs: readonly Waiting[], id: RunId): Waiting {
  const run = runs.find((one) => one.id === id);
  if (run === undefined) throw new Bug(`${id} is not waiting where the log says it is`);
  return run;
}

/** Shared, so that a hundred thousand idle lanes do not hold a hundred thousand empty arrays. */
const NONE: readonly Waiting[] = [];
const NO_ANSWERS: readonly Answered[] = [];
const NO_GRANTS: readonly string[] = [];

const answered = ({ key, content, answer }: Extract<Event, { type: "request.answered" }>): Answered => ({
  key,
  content,
  answer,
});

function without(runs: readonly Waiting[], id: RunId): readonly Waiting[] {
  const rest = runs.filter((run) => run.id !== id);
  return rest.length === 0 ? NONE : rest;
}

function insertAt(runs: readonly Waiting[], index: number, run: Waiting): readonly Waiting[] {
  return [...runs.slice(0, index), run, ...runs.slice(index)];
}

/** Back into the queue at the place its acceptance gives it. */
function byAcceptance(queue: readonly Waiting[], run: Waiting): readonly Waiting[] {
  const after = queue.findIndex((one) => one.delivery !== "interrupt" && one.acceptedAt > run.acceptedAt);
  return insertAt(queue, after === -1 ? queue.length : after, run); // @fault requeued-behind-later-ones
}
