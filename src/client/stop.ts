// Cancels over the network. A cancel is recorded once, however often it is sent. A wait for the end is split into
// several requests, because no connection lasts ten minutes.

import { WAIT_MS_MAX } from "../core/limits.ts";
import type { CancelReceipt, Covered, CoveredProcess, SessionReceipt } from "../core/model/cancel.ts";
import type { RunId, SessionId } from "../core/model/ids.ts";
import type { AwaitedOutcome, CancelOptions } from "../ports/control.ts";
import { checkKey, invalid } from "./input.ts";
import { WAIT_PIECE_MS } from "./limits.ts";
import type { Unanswered } from "./send-order.ts";
import type { Connection } from "./transport/connection.ts";

/** The receipt of one cancelled thing. */
export type Stopped = CancelReceipt & AwaitedOutcome;

export interface StopRequest {
  readonly path: string;
  readonly body: object;
  /** Undefined: the path names exactly one thing, so sending it again does no harm. */
  readonly key?: string | undefined;
  /** Undefined: the server responds once the cancel is recorded. */
  readonly waitMs?: number | undefined;
}

/**
 * Cancels one run, call, process or question, and waits for its end as long as requested. The cancel is recorded
 * first and waited for afterwards, so that the next prompt need not wait for the end.
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

/** Adds the end to the receipt of a stop. `began`: when the wait began. */
export async function withEnd<T extends Stopped>(
  connection: Connection,
  receipt: T,
  { waitMs = 0, ...request }: StopRequest & { readonly began: number },
): Promise<T> {
  if (waitMs === 0 || receipt.kind !== "stopping") return receipt;
  const last = await inPieces<Stopped>(connection, { ...request, waitMs }, (one) => !isLimit(one));
  // It may have ended before the next request, whose receipt then has another form.
  if (last.kind === "settled") return { ...receipt, ended: { kind: "settled", outcome: last.outcome } };
  const ended = last.ended?.kind === "limit" ? { ...last.ended, waitMs } : last.ended;
  return { ...receipt, ...(ended === undefined ? {} : { ended }) };
}

interface PromptStop {
  readonly reason: CancelOptions["reason"] | undefined;
  readonly key?: string | undefined;
  /**
   * True: the prompt may not have arrived, and is withdrawn when it does. Undefined: true if it has no response yet.
   */
  readonly early: boolean | undefined;
}

export type KeyReceipt = CancelReceipt & { readonly runId?: RunId };

/** Cancels a prompt by its key. */
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

/** Waits for the end of everything that a cancel of a session covers. */
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

/** Repeats the request with the remaining time until `isOver`, or until the time is over. */
async function inPieces<T>(connection: Connection, wait: Wait, isOver: (last: T) => boolean): Promise<T> {
  const { path, body, key, waitMs, began } = wait;
  const leftMs = (): number => Math.max(0, Math.ceil(waitMs - (connection.clock.elapsed() - began)));
  for (;;) {
    const pieceMs = Math.min(leftMs(), WAIT_PIECE_MS);
    const request = { path, key, body: { ...body, waitMs: pieceMs }, waitMs: pieceMs };
    const last = await connection.value<T>({ method: "POST", ...request });
    if (isOver(last) || leftMs() === 0) return last;
  }
}

export function checkWait(given: number | undefined): number | undefined {
  if (given === undefined || (Number.isInteger(given) && given >= 0 && given <= WAIT_MS_MAX)) return given;
  throw invalid(`waitMs must be a whole number of milliseconds from 0 to ${WAIT_MS_MAX}.`);
}

const isLimit = (receipt: Stopped): boolean => receipt.ended?.kind === "limit";
