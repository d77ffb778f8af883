// Cancelling over the network: once recorded it is recorded, however often it must be sent; and waiting for the end is
// made of pieces, because no connection lasts for ten minutes.

import { CALL_WAIT_MS, WAIT_MS_MAX } from "../core/limits.ts";
import type { CancelReceipt, Covered, CoveredProcess, Outcome, SessionReceipt } from "../core/model/cancel.ts";
import type { RunId } from "../core/model/ids.ts";
import type { AwaitedOutcome, CancelOptions } from "../ports/control.ts";
import { checkKey, invalid } from "./input.ts";
import { WAIT_PIECE_MS } from "./limits.ts";
import type { Unanswered } from "./send-order.ts";
import type { Connection } from "./transport/connection.ts";

/** What is told of one thing that is being stopped. */
export type Stopped = CancelReceipt & AwaitedOutcome;

/** What a caller says about how something is to be stopped. */
export interface StopCommand {
  readonly reason: CancelOptions["reason"] | undefined;
  readonly waitMs: number | undefined;
}

export interface StopRequest {
  readonly path: string;
  readonly body: object;
  /** Undefined: what is named in the path is exactly what is meant, so sending it again does no harm. */
  readonly key?: string;
  /** Undefined: as long as the server thinks fit, which is a few seconds at most. */
  readonly waitMs?: number | undefined;
}

/** Cancels one run, call, process or question, and waits for its end as long as was asked. */
export async function stopOne(connection: Connection, request: StopRequest): Promise<Stopped> {
  const { waitMs } = request;
  const send = (pieceMs: number | undefined): Promise<Stopped> => sendStop<Stopped>(connection, request, pieceMs);
  if (checkWait(waitMs) === undefined) return send(undefined);
  return inPieces(connection, waitMs ?? 0, send, (first, last) => {
    // Sent again it may have ended long ago, and is told so in other words.
    if (last.kind === "settled" && first.kind === "stopping") return { ...first, ended: end(last.outcome) };
    return last.ended?.kind === "limit" ? { limit: { ...first, ended: { kind: "limit", waitMs: waitMs ?? 0 } } } : last;
  });
}

interface KeyStop extends Pick<StopCommand, "reason"> {
  readonly key?: string | undefined;
  readonly early: boolean;
}

export type KeyReceipt = CancelReceipt & { readonly runId?: RunId };

/** Cancels a prompt by the key it is sent with. `early`: it may not have arrived, and is withdrawn when it does. */
export function cancelPrompt(
  connection: Connection,
  { sessionId, key }: Unanswered,
  { early, reason, key: once }: KeyStop,
): Promise<KeyReceipt> {
  const within = sessionId === undefined ? "/v1" : `/v1/sessions/${sessionId}`;
  const path = `${within}/prompts/${encodeURIComponent(key)}/cancel`;
  const body = { reason, ...(early ? { early } : {}) };
  return connection.value({ method: "POST", path, body, key: checkKey(once) ?? connection.chance.key() });
}

/** What a cancel of a session covers, with how each of it ended. */
export async function waitForSession(
  connection: Connection,
  request: StopRequest & { readonly waitMs: number },
): Promise<SessionReceipt> {
  const { waitMs } = request;
  const send = (pieceMs: number): Promise<SessionReceipt> => sendStop<SessionReceipt>(connection, request, pieceMs);
  return inPieces(connection, waitMs, send, (_, last) => {
    const parts: readonly (Covered | CoveredProcess)[] = [...last.runs, ...("processes" in last ? last.processes : [])];
    return parts.some(({ receipt }) => isLimit(receipt)) ? { limit: last } : last;
  });
}

/** Sends again and again with the time that is left, until it has ended or the time is over. */
async function inPieces<T extends object>(
  connection: Connection,
  waitMs: number,
  send: (pieceMs: number) => Promise<T>,
  judge: (first: T, last: T) => T | { readonly limit: T },
): Promise<T> {
  const began = connection.clock.elapsed();
  let leftMs = waitMs;
  let first: T | undefined;
  for (;;) {
    const last = await send(Math.min(leftMs, WAIT_PIECE_MS));
    first ??= last;
    const judged = judge(first, last);
    if (!("limit" in judged)) return judged;
    leftMs = Math.max(0, Math.ceil(waitMs - (connection.clock.elapsed() - began)));
    if (leftMs === 0) return judged.limit;
  }
}

function sendStop<T>(connection: Connection, request: StopRequest, pieceMs: number | undefined): Promise<T> {
  const { path, body, key } = request;
  return connection.value<T>({
    method: "POST",
    path,
    body: { ...body, ...(pieceMs === undefined ? {} : { waitMs: pieceMs }) },
    waitMs: pieceMs ?? CALL_WAIT_MS,
    ...(key === undefined ? {} : { key }),
  });
}

export function checkWait(given: number | undefined): number | undefined {
  if (given === undefined || (Number.isInteger(given) && given >= 0 && given <= WAIT_MS_MAX)) return given;
  throw invalid(`waitMs is a whole number of milliseconds from 0 to ${WAIT_MS_MAX}.`);
}

const isLimit = (receipt: Stopped): boolean => receipt.ended?.kind === "limit";
const end = (outcome: Outcome) => ({ kind: "settled", outcome }) as const;
