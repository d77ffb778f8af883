// Compares what followers received with the logs: each a contiguous slice, with every gap announced.
import type { Recorded } from "../../src/core/event.ts";
import type { FollowerSlice } from "./caller-history.ts";
import type { Report } from "./finding.ts";
import { type LogIndex, same } from "./log-index.ts";

export function checkSlice({ sessionId, after, received, untilRest }: FollowerSlice, index: LogIndex, report: Report) {
  const log = index.logs.get(sessionId) ?? [];
  let cursor = after;
  for (const one of received) {
    const from = one.type === "gap" ? one.from : one.seq;
    if (from !== cursor + 1) {
      report("brokenSlices", `A follower of ${sessionId} received ${from} after ${cursor}.`);
      return;
    }
    cursor = one.type === "gap" ? one.to : one.seq;
    const there = log[cursor - 1];
    if (there === undefined) {
      report("brokenSlices", `A follower of ${sessionId} received ${cursor}; the log ends at ${log.length}.`, "G29");
      return;
    }
    if (one.type !== "gap" && !same(withoutPaths(one), withoutPaths(there))) {
      const types = `${one.type} at ${cursor}; the log has ${there.type}`;
      report("brokenSlices", `A follower of ${sessionId} received ${types}, or with other content.`, "G29");
      return;
    }
  }
  if (untilRest === true && cursor < log.length) {
    report("brokenSlices", `A follower of ${sessionId} received everything up to ${cursor} of ${log.length}.`);
  }
}

/** A server does not disclose where it keeps its files. */
function withoutPaths(event: Recorded): Recorded {
  if (event.type !== "process.settled" || event.output === undefined) return event;
  const { dir: _, ...output } = event.output;
  return { ...event, output };
}
