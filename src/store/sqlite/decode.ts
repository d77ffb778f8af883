// Converts database rows to the types of the store's interface.
import type { Recorded } from "../../core/model/event.ts";
import type { Seq } from "../../core/model/ids.ts";
import type { CallRow, ProcessRow, RunRow } from "../../core/model/rows.ts";
import type { SessionRow } from "../../ports/store.ts";
import { decodeEvents, decodeOutcome } from "../../wire/event.ts";
import type { EventRow, StoredCall, StoredProcess, StoredRun, StoredSession } from "./log-reader.ts";

/** The events after `after`, at most `limit`: the first and the last append may contain more events than requested. */
export function eventsOf(rows: readonly EventRow[], after: Seq, limit: number): readonly Recorded[] {
  const found: Recorded[] = [];
  for (const row of rows) {
    for (const event of decodeEvents(row.data, row.seq, row.at)) {
      if (event.seq > after && event.seq <= after + limit) found.push(event);
    }
  }
  return found;
}

export const runRow = (run: StoredRun): RunRow => ({
  id: run.id,
  session: run.session,
  phase: run.phase,
  acceptedAt: run.acceptedAt,
  settledAt: run.settledAt ?? undefined,
  key: run.key ?? undefined,
  content: run.content ?? undefined,
  outcome: run.outcome === null ? undefined : decodeOutcome(run.outcome),
});

export const callRow = (call: StoredCall): CallRow => ({ ...call, outcome: decodeOutcome(call.outcome) });

export const processRow = (found: StoredProcess): ProcessRow => ({
  id: found.id,
  session: found.session,
  requestedAt: found.requestedAt,
  settledAt: found.settledAt ?? undefined,
  outcome: found.outcome === null ? undefined : decodeOutcome(found.outcome),
});

export const sessionRow = (session: StoredSession): SessionRow => ({
  ...session,
  title: session.title ?? undefined,
  cwd: session.cwd ?? undefined,
});
