// A session's lane, folded from its log: the live run, the waiting runs and their order.
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

/**
 * A run that has not started, in the queue or among the steers.
 *
 * It starts when it is first in the queue and no run is live, is taken into the live run as a steer, or is withdrawn by
 * a cancel. If Belay dies here nothing is lost: the run waits for the next worker.
 */
export interface Waiting {
  readonly id: RunId;
  readonly prompt: Prompt;
  readonly delivery: Delivery;
  readonly acceptedAt: Seq;
  readonly key: string | undefined;
  readonly content: string | undefined;
  /** What it counts towards the queue's limit in bytes. */
  readonly bytes: number;
}

export interface Lane {
  readonly id: SessionId;
  /**
   * - `absent`: the log is empty; the session was never created.
   * - `open`: it accepts prompts.
   * - `closed`: it accepts nothing new, and what is live is being stopped. The log stays.
   */
  readonly phase: "absent" | "open" | "closed";
  readonly head: Seq;
  /** Where it works; undefined: the host's directory. */
  readonly cwd: string | undefined;
  /** The mode that was set; undefined: the agent's default. */
  readonly mode: string | undefined;
  readonly live: Run | undefined;
  /** The next run is first. */
  readonly queue: readonly Waiting[];
  /** Runs that wait to be taken into the live run, oldest first. */
  readonly steers: readonly Waiting[];
  /** The latest requests with an idempotency key, and their answers. */
  readonly answered: readonly Answered[];
  /** Items for the model's next turn, oldest first. */
  readonly inbox: readonly PendingItem[];
  /** The scopes that are approved for the whole session. */
  readonly grants: readonly string[];
  readonly processes: Processes;
  /** Memos, oldest first. Not part of a snapshot. */
  readonly memos: MemoSet;
  /**
   * The position from which the log is read for the next request to a model; the last summary covers what is before it.
   * Without a summary, the beginning. 0: unknown, because an earlier version stored the session.
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

/** The lane after `event`. Trusts the log: a log that contradicts itself is a `Bug`. */
export function evolve(lane: Lane, event: Event): Lane {
  const head = lane.head + 1;
  switch (event.type) {
    case "session.created":
      return { ...lane, head, phase: "open", cwd: event.cwd };
    case "session.mode_set":
      return { ...lane, head, mode: event.mode };
    case "session.compacted":
      return { ...lane, head, contextFrom: contextFrom(lane) }; // @fault inbox-lost-at-compaction
    case "session.cancel_requested": // Items begin no run either. The next turn still takes them.
      return { ...withoutWake(lane), head, processes: quieted(lane.processes) }; // @fault woken-after-the-cancel
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
      return accept({ ...(event.wake === true ? withoutWake(lane) : lane), head }, waiting(event, head));
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
        // In order of acceptance, not in the order in which they became steers.
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
      return { ...removeReceived(lane, event), head, live: evolveRun(liveRun(lane, event.runId), event, head) };
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

/** The position of the oldest prompt that has not settled: that of the run that makes the summary, or one behind it. */
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

/** Where an accepted prompt is put. A steer needs a live run that will have another turn. */
export function placeFor(lane: Lane, delivery: Delivery): "steers" | "front" | "back" {
  if (delivery === "steer" && lane.live?.phase === "running") return "steers";
  return delivery === "interrupt" ? "front" : "back"; // @fault interrupt-at-the-tail
}

/** Number of interrupts at the front. They precede the queue and keep their order among themselves. */
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

/** Remembers the scope of an approval that was given for the whole session. */
function grant(lane: Lane, { questionId, ending }: Extract<Event, { type: "question.settled" }>): Lane {
  if (ending.kind !== "allowed" || ending.remember !== "session") return lane;
  const about = lane.live?.questions.find((one) => one.id === questionId)?.about;
  if (about?.kind !== "approval" || lane.grants.includes(about.scope)) return lane;
  return { ...lane, grants: [...lane.grants.slice(1 - GRANTS_KEPT), about.scope] };
}

const waits = ({ type: _, ...entry }: Extract<Event, { type: "inbox.added" }>): PendingItem => entry;

/** Clears `wake` on every item: a run is begun for them. */
function withoutWake(lane: Lane): Lane {
  if (!lane.inbox.some(({ wake }) => wake === true)) return lane;
  return { ...lane, inbox: lane.inbox.map(({ wake: _, ...entry }) => entry) };
}

/** Removes the results that a call or turn has received from the inbox. */
function removeReceived(lane: Lane, { heard }: Extract<Event, { type: "call.settled" | "turn.settled" }>): Lane {
  if (heard === undefined) return lane;
  const isReceived = ({ processId }: PendingItem): boolean => processId !== undefined && heard.includes(processId);
  return { ...lane, inbox: left(lane.inbox, (one) => !isReceived(one)) }; // @fault heard-and-told-again
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

/** Inserts a run at the position that its acceptance gives it. */
function byAcceptance(queue: readonly Waiting[], run: Waiting): readonly Waiting[] {
  const after = queue.findIndex((one) => one.delivery !== "interrupt" && one.acceptedAt > run.acceptedAt);
  return insertAt(queue, after === -1 ? queue.length : after, run); // @fault requeued-behind-later-ones
}
