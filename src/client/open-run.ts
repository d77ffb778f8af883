// Opens a handle for a run that was accepted earlier, from its row.

import type { RunRow } from "../core/model/rows.ts";
import type { Explanation } from "../ports/explanation.ts";
import { ClientRun } from "./run.ts";
import type { AcceptedIn } from "./send-order.ts";
import type { Connection } from "./transport/connection.ts";

export async function openRun(connection: Connection, row: RunRow): Promise<ClientRun> {
  const known = await standing(connection, row);
  const accepted = Promise.resolve(known);
  return new ClientRun(connection, { sessionId: row.session, accepted, known, prompt: undefined });
}

async function standing(connection: Connection, row: RunRow): Promise<AcceptedIn> {
  const { id: runId, session: sessionId, acceptedAt: seq } = row;
  const known = { kind: "accepted", runId, sessionId, seq, repeated: true } as const;
  if (row.phase !== "waiting") return { ...known, joined: "queue", ahead: 0 };
  const { steers, queue, live } = await connection.get<Explanation>(`/v1/sessions/${sessionId}/explain`);
  const steer = steers.some((one) => one.runId === runId);
  const place = Math.max(
    queue.findIndex((one) => one.runId === runId),
    0,
  );
  return { ...known, joined: steer ? "steer" : "queue", ahead: place + (live === undefined ? 0 : 1) };
}
