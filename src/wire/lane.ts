// The encoding of a lane's snapshot. A load starts from the snapshot instead of the beginning of the log.
//
// Invariants
// 1. The decoded lane equals the encoded lane, undefined fields included: JSON drops them, decoding restores them.
// 2. A snapshot does not contain memos: they are loaded with the session.
// 3. A snapshot of a higher version is refused as `store_newer`.
import { Bug } from "../core/bug.ts";
import type { Seq } from "../core/model/ids.ts";
import type { InboxItem, PendingItem } from "../core/model/inbox.ts";
import type { Lane, Waiting } from "../core/model/lane.ts";
import { NO_MEMOS } from "../core/model/memo-set.ts";
import { NO_PROCESSES } from "../core/model/process.ts";
import { NOTHING_SPENT, type Run } from "../core/model/run.ts";
import { corrupt, isObject, parse, requireVersion } from "./event.ts";

const VERSION = 1;

/** Encodes the lane at `head`. Any other position would make every later load wrong, so it is reported as a bug. */
export function encodeLane(lane: Lane, head: Seq): string {
  if (lane.head !== head)
    throw new Bug(`the snapshot of ${lane.id} is at ${lane.head}, but its log will be at ${head}`);
  const { memos: _, ...kept } = lane;
  return JSON.stringify({ v: VERSION, lane: kept });
}

export function decodeLane(text: string): Lane {
  const value = parse(text);
  if (!isObject(value)) throw corrupt("A stored snapshot is not an object.");
  requireVersion(value.v, VERSION, "snapshot");
  const stored = value.lane;
  if (!isObject(stored) || !Array.isArray(stored.queue) || !Array.isArray(stored.steers)) {
    throw corrupt("A stored snapshot has no lane.");
  }
  const lane = stored as unknown as Lane;
  return {
    id: lane.id,
    phase: lane.phase,
    head: lane.head,
    cwd: lane.cwd,
    mode: lane.mode,
    live: lane.live === undefined ? undefined : restoreRun(lane.live),
    queue: lane.queue.map(restoreWaiting),
    steers: lane.steers.map(restoreWaiting),
    answered: lane.answered ?? [],
    inbox: (lane.inbox ?? []).map(restorePending),
    grants: lane.grants ?? [],
    processes: lane.processes ?? NO_PROCESSES,
    memos: NO_MEMOS,
    contextFrom: lane.contextFrom ?? CONTEXT_UNKNOWN,
  };
}

/** Older snapshots lack the position of the last summary: the context is then read from the beginning of the log. */
const CONTEXT_UNKNOWN = 0;

const restoreWaiting = (run: Waiting): Waiting => ({ ...run, key: run.key, content: run.content });

/** Snapshots from before processes existed contain bare inbox items. */
const restorePending = (one: PendingItem | InboxItem): PendingItem => ("item" in one ? one : { item: one });

const restoreRun = (run: Run): Run => ({
  ...run,
  recoveries: run.recoveries ?? 0,
  textChars: run.textChars ?? 0,
  last: run.last,
  taken: run.taken ?? [],
  key: run.key,
  content: run.content,
  turn: run.turn,
  questions: (run.questions ?? []).map((question) => ({ ...question, deadlineMs: question.deadlineMs })),
  asked: run.asked ?? 0,
  spent: run.spent ?? NOTHING_SPENT,
  meter: run.meter,
  model: run.model,
});
