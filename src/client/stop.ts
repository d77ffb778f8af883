// Cancelling over the network: once recorded it is recorded, however often it must be sent; and waiting for the end is
// made of pieces, because no connection lasts for ten minutes.

import { WAIT_MS_MAX } from "../core/limits.ts";
import type { CancelReceipt, Covered, CoveredProcess, SessionReceipt } from "../core/model/cancel.ts";
import type { RunId, SessionId } from "../core/model/ids.ts";
import type { AwaitedOutcome, CancelOptions } from "../ports/control.ts";
import { checkKey, invalid } from "./input.ts";
import { WAIT_PIECE_MS } from "./limits.ts";
import type { Unanswered } from "./send-order.ts";
import type { Connection } from "./transport/connection.ts";

/** What is told of one thing that is being stopped. */
export type Stopped = CancelReceipt & AwaitedOutcome;

export interface StopRequest {
  readonly path: string;
  readonly body: object;
  /** Undefined: what is named in the path is exactly what is meant, so sending it again does no harm. */
  readonly key?: string | undefined;
  /** Undefined: the server answers once it is recorded. */
  readonly waitMs?: number | undefined;
}

/**
 * Cancels one run, call, process or question, and waits for its end as long as was asked. Recorded first and waited for
 * afterwards, so that the next prompt need not wait for the end of what was stopped.
 */
export async function stopOne(
  connection: Connection,
  session: SessionId | undefined,
  request: StopRequest,
): Promise<Stopped> {
  const { path, body, key, waitMs } = request;
  const limit = checkWait(waitMs) === undefined ? {} : { waitMs: 0 };
  const began = connection.clock.elapsed();
  const receipt = await connection.stop<Stopped>(session, { path, body: { ...body, ...limit }, key });
  return withEnd(connection, receipt, { ...request, began });
}

/** The receipt of a stop, and how what it stops has ended. `began`: since when it is waited for. */
export async function withEnd<T extends Stopped>(
  connection: Connection,
  receipt: T,
  { waitMs = 0, ...request }: StopRequest & { readonly began: number },
): Promise<T> {
  if (waitMs === 0 || receipt.kind !== "stopping") return receipt;
  const last = await inPieces<Stopped>(connection, { ...request, waitMs }, (one) => !isLimit(one));
  // By the next request it may have ended long ago: then the receipt says so in another form.
  if (last.kind === "settled") return { ...receipt, ended: { kind: "settled", outcome: last.outcome } };
  const ended = last.ended?.kind === "limit" ? { ...last.ended, waitMs } : last.ended;
  return { ...receipt, ...(ended === undefined ? {} : { ended }) };
}

interface PromptStop {
  readonly reason: CancelOptions["reason"] | undefined;
  readonly key?: string | undefined;
  /** It may not have arrived, and is withdrawn when it does. Undefined: if it has no answer yet. */
  readonly early: boolean | undefined;
}

export type KeyReceipt = CancelReceipt & { readonly runId?: RunId };

/** Cancels a prompt by the key it is sent with. */
export function cancelPrompt(
  connection: Connection,
  { sessionId, key }: Unanswered,
  { early, reason, key: once }: PromptStop,
): Promise<KeyReceipt> {
  const within = sessionId === undefined ? "/v1" : `/v1/sessions/${sessionId}`;
  const path = `${within}/prompts/${encodeURIComponent(key)}/cancel`;
  const isEarly = early || connection.order.unanswered().some((one) => one.sessionId === sessionId && one.key === key);
  const body = { reason, ...(isEarly ? { early: true } : {}) };
  return connection.stop(sessionId, { path, body, key: checkKey(once) ?? connection.chance.key() });
}

/** What a cancel of a session covers, with how each of it ended. */
export function waitForSession(connection: Connection, wait: Wait): Promise<SessionReceipt> {
  return inPieces<SessionReceipt>(connection, wait, (last) => {
    const parts: readonly (Covered | CoveredProcess)[] = [...last.runs, ...("processes" in last ? last.processes : [])];
    return !parts.some(({ receipt }) => isLimit(receipt));
  });
}

interface Wait extends StopRequest {
  readonly waitMs: number;
  readonly began: number;
}

/** Sends again and again with the time that is left, until it has ended or the time is over. */
async function inPieces<T>(connection: Connection, wait: Wait, isOver: (last: T) => boolean): Promise<T> {
  const { path, body, key, waitMs, began } = wait;
  const leftMs = (): number => Math.max(0, Math.ceil(waitMs - (connection.clock.elapsed() - began)));
  for (;;) {
    const pieceMs = Math.min(leftMs(), WAIT_PIECE_MS);
    const asked = { path, key, body: { ...body, waitMs: pieceMs }, waitMs: pieceMs };
    const last = await connection.value<T>({ method: "POST", ...asked });
    if (isOver(last) || leftMs() === 0) return last;
  }
}

export function checkWait(given: number | undefined): number | undefined {
  if (given === undefined || (Number.isInteger(given) && given >= 0 && given <= WAIT_MS_MAX)) return given;
  throw invalid(`waitMs is a whole number of milliseconds from 0 to ${WAIT_MS_MAX}.`);
}

const isLimit = (receipt: Stopped): boolean => receipt.ended?.kind === "limit";
