// Cancelling over the network: once recorded it is recorded, however often it must be sent; and waiting for the end is
// made of pieces, because no connection lasts for ten minutes.

import type { CancelOptions, Waited } from "../control.ts";
import type { CancelReceipt, Covered, CoveredProcess, Outcome, SessionReceipt } from "../core/cancel.ts";
import type { Accepted } from "../core/command.ts";
import { type ControlCode, ControlError } from "../core/control-error.ts";
import type { RunId, SessionId } from "../core/ids.ts";
import { CALL_WAIT_MS, WAIT_MS_MAX } from "../core/limits.ts";
import type { Connection } from "./connection.ts";
import { invalid } from "./input.ts";
import { WAIT_PIECE_MS } from "./limits.ts";
import { isTold } from "./reply.ts";
import type { OnItsWay } from "./send-order.ts";

/** What is told of one thing that is being stopped. */
export type Stopped = CancelReceipt & Waited;

/** What a caller says about how something is to be stopped. */
export interface StopWish {
  readonly reason: CancelOptions["reason"] | undefined;
  readonly waitMs: number | undefined;
}

export interface StopRequest {
  readonly path: string;
  readonly body: { readonly reason?: CancelOptions["reason"] | undefined; readonly remind?: boolean | undefined };
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

/**
 * The prompts that a cancel may have overtaken on the way: whichever of them it did not cover is cancelled by its id,
 * as soon as that is known.
 */
export function coverOvertaken(
  connection: Connection,
  overtaken: readonly OnItsWay[],
  { reason, waitMs, covered }: StopBehind,
): Promise<readonly CoveredBehind[]> {
  const each = overtaken.map(async (one): Promise<readonly CoveredBehind[]> => {
    const accepted = await orRefused(one.accepted);
    if (accepted === undefined || (await covered).has(accepted.runId)) return [];
    const { runId, sessionId } = accepted;
    const path = `/v1/runs/${runId}/cancel`;
    const receipt = await stopOne(connection, { path, body: { reason }, key: connection.chance.key(), waitMs });
    // What had ended before, or was refused, is nothing that this cancel covers.
    return receipt.kind === "stopping" || receipt.kind === "withdrawn" ? [{ runId, receipt, sessionId }] : [];
  });
  return Promise.all(each).then((found) => found.flat());
}

interface StopBehind extends StopWish {
  /** The runs that the cancel itself has covered. */
  readonly covered: Promise<ReadonlySet<RunId>>;
}

export interface CoveredBehind extends Covered {
  readonly sessionId: SessionId;
}

export const runsOf = (receipts: readonly SessionReceipt[]): ReadonlySet<RunId> =>
  new Set(receipts.flatMap(({ runs }) => runs.map(({ runId }) => runId)));

/** Undefined: it was refused, so there is nothing. Rejects if nobody knows. */
export async function orRefused<T extends Accepted>(accepted: Promise<T>): Promise<T | undefined> {
  try {
    return await accepted;
  } catch (thrown) {
    if (thrown instanceof ControlError && thrown.code !== "disconnected" && thrown.code !== "internal")
      return undefined;
    throw thrown;
  }
}

/** The codes by which a house judges a prompt, having looked under its key. */
const JUDGED: ReadonlySet<ControlCode> = new Set([
  ...(["invalid", "not_found", "conflict", "closed", "busy", "queue_full"] as const),
]);

/** Nothing that stands under its key is this prompt. After any other failure it may be there all the same. */
export const isRefusal = (thrown: unknown): boolean =>
  thrown instanceof ControlError && JUDGED.has(thrown.code) && isTold(thrown);

/** One receipt for what a cancel has covered itself and what was covered behind it. */
export function together(receipt: SessionReceipt, behind: readonly CoveredBehind[]): SessionReceipt {
  if (behind.length === 0) return receipt;
  const runs = [...receipt.runs, ...behind.map((one) => ({ runId: one.runId, receipt: one.receipt }))];
  const stopping = receipt.kind === "stopping" || behind.some((one) => one.receipt.kind === "stopping");
  const processes = "processes" in receipt ? { processes: receipt.processes } : {};
  return { kind: stopping ? "stopping" : "withdrawn", runs, ...processes };
}

export function checkWait(given: number | undefined): number | undefined {
  if (given === undefined || (Number.isInteger(given) && given >= 0 && given <= WAIT_MS_MAX)) return given;
  throw invalid(`waitMs is a whole number of milliseconds from 0 to ${WAIT_MS_MAX}.`);
}

const isLimit = (receipt: Stopped): boolean => receipt.ended?.kind === "limit";
const end = (outcome: Outcome) => ({ kind: "settled", outcome }) as const;
