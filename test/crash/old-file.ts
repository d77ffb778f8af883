// A file as an earlier Belay would have left it when it was killed: of an earlier version, with a run that had ended,
// one that was going on, and one that waited.
import type { Event, Recorded } from "../../src/core/model/event.ts";
import type { RunId, SessionId } from "../../src/core/model/ids.ts";
import { openDatabase, useWriteAheadLog } from "../../src/store/sqlite/database.ts";
import { migrate } from "../../src/store/sqlite/file/migrate.ts";
import { MIGRATIONS } from "../../src/store/sqlite/schema.ts";
import { encodeEvents, encodeOutcome } from "../../src/wire/event.ts";
import type { FollowerSlice } from "../oracle/caller-history.ts";

/** What is in it: nobody may lose or change any of that. */
export function makeOldFile(file: string, version: number, sessionId: SessionId): FollowerSlice {
  const id = (name: string): RunId => `run_${sessionId.slice(4)}${name}`;
  const [done, live, waits] = [id("done"), id("live"), id("waits")];
  const accepted = (runId: RunId): Event => ({
    type: "run.accepted",
    runId,
    prompt: { text: "from before" },
    delivery: "queue",
  });
  const outcome = { kind: "completed" } as const;
  const turn = (runId: RunId) => ({ runId, turnId: `turn_${runId.slice(4)}.1` }) as const;
  const events: readonly Event[] = [
    { type: "session.created", sessionId },
    accepted(done),
    { type: "run.started", runId: done },
    { type: "turn.requested", ...turn(done) },
    { type: "turn.settled", ...turn(done), outcome, next: "end", text: "done" },
    { type: "run.settled", runId: done, outcome },
    accepted(live),
    { type: "run.started", runId: live },
    { type: "turn.requested", ...turn(live) },
    accepted(waits),
  ];
  const at = 1_700_000_000_000;
  const database = openDatabase(file);
  migrate(database, MIGRATIONS.slice(0, version));
  useWriteAheadLog(database);
  database.prepare("INSERT INTO session (id, created_at) VALUES (?, ?)").run(sessionId, at);
  database
    .prepare("INSERT INTO event (session, seq, count, at, data) VALUES (1, 1, ?, ?, ?)")
    .run(events.length, at, encodeEvents(events));
  const run = database.prepare(
    "INSERT INTO run (id, session, phase, accepted_at, settled_at, outcome) VALUES (?, 1, ?, ?, ?, ?)",
  );
  run.run(done, "settled", 2, 6, encodeOutcome(outcome));
  run.run(live, "live", 7, null, null);
  run.run(waits, "waiting", 10, null, null);
  database.close();
  return { sessionId, after: 0, received: events.map((event, index): Recorded => ({ ...event, seq: index + 1, at })) };
}
