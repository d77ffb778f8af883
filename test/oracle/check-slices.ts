// Compares what followers received with the logs: each a contiguous slice, with every gap announced.
import type { Gap } from "../../src/core/model/delta.ts";
import type { Recorded } from "../../src/core/model/event.ts";
import type { FollowerSlice, LogPosition } from "./caller-history.ts";
import type { Report } from "./finding.ts";
import { type LogIndex, same } from "./log-index.ts";

export function checkSlice(slice: FollowerSlice, index: LogIndex, report: Report): void {
  const { sessionId, after, received, positions, untilRest } = slice;
  const log = index.logs.get(sessionId) ?? [];
  let cursor = after;
  for (const [place, one] of received.entries()) {
    const error = errorOf(one, cursor, log, positions?.[place]);
    if (error !== undefined) {
      report("brokenSlices", `A follower of ${sessionId} received ${error.what}.`, error.guarantee);
      return;
    }
    cursor = one.type === "gap" ? one.to : one.seq;
  }
  if (untilRest === true && cursor < log.length) {
    report("brokenSlices", `A follower of ${sessionId} received everything up to ${cursor} of ${log.length}.`);
  }
}

interface SliceError {
  readonly what: string;
  readonly guarantee?: string;
}

/** Why this cannot be received after `cursor`. `position`: the log at that moment, if it is known. */
function errorOf(
  one: Recorded | Gap,
  cursor: number,
  log: readonly Recorded[],
  position: LogPosition | undefined,
): SliceError | undefined {
  const [from, to] = one.type === "gap" ? [one.from, one.to] : [one.seq, one.seq];
  if (from !== cursor + 1) return { what: `${from} after ${cursor}` };
  const there = log[to - 1];
  if (there === undefined) return { what: `${to}; the log ends at ${log.length}`, guarantee: "G29" };
  if (one.type === "gap") {
    const isTrimmed = to >= from && (position === undefined || to <= position.trimmedTo);
    return isTrimmed ? undefined : { what: `a gap from ${from} to ${to}, which was not trimmed` };
  }
  if (position !== undefined && to > position.head) {
    return { what: `${one.type} at ${to} before it was recorded`, guarantee: "G16" };
  }
  if (same(withoutPaths(one), withoutPaths(there))) return undefined;
  return { what: `${one.type} at ${to}; the log has ${there.type}, or with other content`, guarantee: "G29" };
}

/** A server does not disclose where it keeps its files. */
function withoutPaths(event: Recorded): Recorded {
  if (event.type !== "process.settled" || event.output === undefined) return event;
  const { dir: _, ...output } = event.output;
  return { ...event, output };
}
