// `cancelAll()`: one request records every cancel, then the client waits for each stopped run and process.

import type { CancelAllOptions, CoveredSession } from "../ports/control.ts";
import { checkKey, rejectUnknown } from "./input.ts";
import { WAITS_AT_ONCE_MAX } from "./limits.ts";
import { checkWait, type Stopped, withEnd } from "./stop.ts";
import type { Connection } from "./transport/connection.ts";

/** Cancels the work of every session, and this client's prompts that have no response yet. */
export async function stopAll(
  connection: Connection,
  options: Omit<CancelAllOptions, "tenant" | "actor">,
): Promise<readonly CoveredSession[]> {
  const { reason, waitMs, background, key = connection.chance.key(), prompts: given = [], ...rest } = options;
  rejectUnknown(rest, "cancelAll()");
  checkWait(waitMs);
  const began = connection.clock.elapsed();
  const { sessions } = await connection.stopAll<{ sessions: readonly CoveredSession[] }>(undefined, (named) => ({
    path: "/v1/cancel",
    body: { reason, background, prompts: [...given, ...named] },
    key: checkKey(key),
  }));
  return waitMs === undefined ? sessions : waitForAll(connection, sessions, { waitMs, began });
}

/** Repeats each cancel by id: this changes nothing, and its receipt says how the run or process ended. */
async function waitForAll(
  connection: Connection,
  sessions: readonly CoveredSession[],
  wait: { readonly waitMs: number; readonly began: number },
): Promise<readonly CoveredSession[]> {
  const waits: (() => Promise<void>)[] = [];
  const each = <T extends { readonly receipt: Stopped }>(parts: readonly T[], pathOf: (part: T) => string): T[] => {
    const waited = [...parts];
    for (const [index, part] of parts.entries()) {
      waits.push(async () => {
        const receipt = await withEnd(connection, part.receipt, { ...wait, path: `${pathOf(part)}/cancel`, body: {} });
        waited[index] = { ...part, receipt };
      });
    }
    return waited;
  };
  const covered = sessions.map(({ sessionId, receipt }) => {
    if (receipt.kind !== "stopping" && receipt.kind !== "withdrawn") return { sessionId, receipt };
    const runs = each(receipt.runs, ({ runId }) => `/v1/runs/${runId}`);
    if (!("processes" in receipt)) return { sessionId, receipt: { ...receipt, runs } };
    const processes = each(receipt.processes, ({ processId }) => `/v1/processes/${processId}`);
    return { sessionId, receipt: { ...receipt, runs, processes } };
  });
  const next = async (): Promise<void> => {
    for (let one = waits.shift(); one !== undefined; one = waits.shift()) await one();
  };
  await Promise.all(Array.from({ length: WAITS_AT_ONCE_MAX }, next));
  return covered;
}
