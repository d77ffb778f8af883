// Cancelling everything there is: recorded in one request, and then waited for one by one.

import type { CoveredProcess, SessionReceipt } from "../core/model/cancel.ts";
import type { CancelAllOptions, CoveredSession } from "../ports/control.ts";
import { checkKey, rejectUnknown } from "./input.ts";
import { WAITS_AT_ONCE_MAX } from "./limits.ts";
import type { SendOrder } from "./send-order.ts";
import { checkWait, type Stopped, stopOne } from "./stop.ts";
import type { Ask, Connection } from "./transport/connection.ts";

/** Stops what every session has going on, and the prompts of this client that have no answer yet. */
export async function stopAll(
  connection: Connection,
  order: SendOrder,
  options: Omit<CancelAllOptions, "tenant" | "actor">,
): Promise<readonly CoveredSession[]> {
  const { reason, waitMs, background, key = connection.chance.key(), prompts: given = [], ...rest } = options;
  rejectUnknown(rest, "cancelAll()");
  checkWait(waitMs);
  const { sessions } = await order.stop(undefined, (named) => {
    const body = { reason, background, prompts: [...given, ...named] };
    const request = { method: "POST", path: "/v1/cancel", body, key: checkKey(key) } as const;
    return connection.value<{ sessions: readonly CoveredSession[] }>(request as Ask);
  });
  return waitMs === undefined ? sessions : waitForAll(connection, sessions, waitMs);
}

async function waitForAll(
  connection: Connection,
  sessions: readonly CoveredSession[],
  waitMs: number,
): Promise<readonly CoveredSession[]> {
  const ended = new Map<string, Stopped["ended"]>();
  const began = connection.clock.elapsed();
  const waits = sessions.flatMap(({ receipt }) => partsOf(receipt));
  const next = async (): Promise<void> => {
    for (let part = waits.shift(); part !== undefined; part = waits.shift()) {
      const leftMs = Math.max(0, Math.ceil(waitMs - (connection.clock.elapsed() - began)));
      // Named by its id it is already being stopped: asking again changes nothing, and tells how it ended.
      const told = await stopOne(connection, { path: part.path, body: {}, waitMs: leftMs });
      const late = { kind: "limit", waitMs } as const;
      ended.set(part.id, told.kind === "settled" ? { kind: "settled", outcome: told.outcome } : (told.ended ?? late));
    }
  };
  await Promise.all(Array.from({ length: WAITS_AT_ONCE_MAX }, next));
  const withEnd = <T extends Stopped>(id: string, receipt: T): T => {
    const how = ended.get(id);
    return how === undefined ? receipt : { ...receipt, ended: how.kind === "limit" ? { ...how, waitMs } : how };
  };
  return sessions.map(({ sessionId, receipt }) => ({ sessionId, receipt: eachWith(receipt, withEnd) }));
}

/** What is being stopped, and where it is asked for. */
function partsOf(receipt: SessionReceipt): { id: string; path: string }[] {
  const runs = receipt.runs.flatMap((one) =>
    one.receipt.kind === "stopping" ? [{ id: one.runId, path: `/v1/runs/${one.runId}/cancel` }] : [],
  );
  const processes = processesOf(receipt).flatMap((one) =>
    one.receipt.kind === "stopping" ? [{ id: one.processId, path: `/v1/processes/${one.processId}/cancel` }] : [],
  );
  return [...runs, ...processes];
}

function eachWith(receipt: SessionReceipt, withEnd: <T extends Stopped>(id: string, one: T) => T): SessionReceipt {
  if (receipt.kind !== "stopping" && receipt.kind !== "withdrawn") return receipt;
  const runs = receipt.runs.map((one) => ({ ...one, receipt: withEnd(one.runId, one.receipt) }));
  const processes = processesOf(receipt).map((one) => ({ ...one, receipt: withEnd(one.processId, one.receipt) }));
  return { ...receipt, runs, ...(processes.length === 0 ? {} : { processes }) };
}

const processesOf = (receipt: SessionReceipt): readonly CoveredProcess[] =>
  "processes" in receipt ? (receipt.processes ?? []) : [];
