// The encoding of events, used in the store and on the wire: one versioned JSON text for each append.
//
// Invariants
// 1. Decoding returns exactly what was encoded, lone surrogates included: JSON escapes them, so the text itself is
//    well-formed.
// 2. A new event type, or a new meaning of an existing one, raises VERSION. A text of a higher version is refused as
//    `store_newer` and never read in part: a lane folded from unknown events would be wrong.
// 3. Every released version can be read.

import { ControlError } from "../core/errors.ts";
import type { Outcome } from "../core/model/cancel.ts";
import type { Event, Recorded } from "../core/model/event.ts";
import type { Seq } from "../core/model/ids.ts";

const VERSION = 1;

/** A record, so that the compiler reports a missing type. */
const KNOWN: Readonly<Record<Event["type"], true>> = {
  "session.created": true,
  "session.cancel_requested": true,
  "session.closed": true,
  "session.mode_set": true,
  "session.compacted": true,
  "inbox.added": true,
  "request.answered": true,
  "run.accepted": true,
  "run.edited": true,
  "run.moved": true,
  "run.steered": true,
  "run.requeued": true,
  "run.taken": true,
  "run.started": true,
  "run.cancel_requested": true,
  "run.parked": true,
  "run.recovered": true,
  "run.settled": true,
  "turn.requested": true,
  "inbox.taken": true,
  "turn.extended": true,
  "turn.settled": true,
  "question.asked": true,
  "question.settled": true,
  "call.requested": true,
  "call.cancel_requested": true,
  "call.settled": true,
  "process.requested": true,
  "process.started": true,
  "process.detached": true,
  "process.cancel_requested": true,
  "process.settled": true,
};

/** Encodes the events of one append: `[version, event, event, …]`. */
export function encodeEvents(events: readonly Event[]): string {
  const text = JSON.stringify(events);
  return events.length === 0 ? `[${VERSION}]` : `[${VERSION},${text.slice(1)}`;
}

/** Decodes one append. Its first event has the position `first`; all of them were recorded at `at`. */
export function decodeEvents(text: string, first: Seq, at: number): readonly Recorded[] {
  const items = parseArray(text);
  requireVersion(items[0], VERSION, "stored append");
  const events: Recorded[] = [];
  for (let index = 1; index < items.length; index += 1) {
    events.push(recorded(items[index], first + index - 1, at));
  }
  return events;
}

/** Encodes an outcome for the store's outcome column. */
export const encodeOutcome = (outcome: Outcome): string => JSON.stringify(outcome);

export function decodeOutcome(text: string): Outcome {
  const value = parse(text);
  if (!isObject(value) || typeof value.kind !== "string") throw corrupt("A stored outcome is not valid.");
  return value as unknown as Outcome;
}

/** Throws `store_newer` for a version above `known`, and `store_corrupt` for anything that is not a version. */
export function requireVersion(version: unknown, known: number, what: string): void {
  if (version === known) return;
  if (typeof version === "number" && version > known) {
    throw new ControlError("store_newer", `The ${what} has version ${version}; this Belay reads up to ${known}.`);
  }
  throw corrupt(`The ${what} has no known version.`);
}

export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw corrupt("A stored text is not JSON.", error);
  }
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const corrupt = (message: string, cause?: unknown): ControlError =>
  new ControlError("store_corrupt", message, { cause });

function recorded(item: unknown, seq: Seq, at: number): Recorded {
  if (!isObject(item) || typeof item.type !== "string" || !Object.hasOwn(KNOWN, item.type)) {
    throw corrupt(`The event at ${seq} has a type that this version of the log does not have.`);
  }
  // Changes the parsed object instead of copying it: this is the hot path of every read.
  item.seq = seq;
  item.at = at;
  return item as unknown as Recorded;
}

function parseArray(text: string): readonly unknown[] {
  const value = parse(text);
  if (!Array.isArray(value)) throw corrupt("A stored append is not an array.");
  return value;
}
