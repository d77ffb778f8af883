// The only place that converts errors to JSON-RPC errors of this protocol. `http/routes/status-code.ts` does it for
// HTTP.
import { RequestError } from "@agentclientprotocol/sdk";
import { ADVICE, type ControlCode, ControlError, toControlError } from "../../../core/errors.ts";
import type { RunId } from "../../../core/model/ids.ts";

/** -32000, -32002 and -32800 are defined by the protocol; the rest is in JSON-RPC's range for servers. */
const CODES: Readonly<Record<ControlCode, number>> = {
  invalid: -32602,
  internal: -32603,
  unauthenticated: -32000,
  not_found: -32002,
  closed: -32002,
  conflict: -32602,
  busy: -32010,
  queue_full: -32011,
  overloaded: -32012,
  shutting_down: -32013,
  forbidden: -32014,
  not_started: -32015,
  uncontained: -32016,
  store_full: -32017,
  store_locked: -32018,
  store_corrupt: -32019,
  store_newer: -32020,
  unavailable: -32021,
  disconnected: -32023,
};

export function rpcError(thrown: unknown, about: { readonly sessionId?: string } = {}): RequestError {
  if (thrown instanceof RequestError) return thrown;
  const { code, message, hint, retryable } = toControlError(thrown);
  return new RequestError(CODES[code], message, { ...about, code, hint, retryable });
}

/** Belay's own code of an error. */
export function codeOf(thrown: unknown): string {
  if (!(thrown instanceof RequestError)) return toControlError(thrown).code;
  const { data } = thrown;
  const known = typeof data === "object" && data !== null && "code" in data ? data.code : undefined;
  return typeof known === "string" ? known : "invalid";
}

export const invalidParams = (message: string, hint: string = ADVICE.invalid.hint): RequestError =>
  rpcError(new ControlError("invalid", message, { hint }));

export const unknownSession = (sessionId: string): RequestError =>
  rpcError(
    new ControlError("not_found", `There is no session ${sessionId.slice(0, 128)} here.`, {
      hint: "Open it on this connection first, with session/load or session/resume; session/list has those there are.",
    }),
    { sessionId },
  );

/** The error for a failed or lost run; the protocol has no other way to report it. */
export const runFailed = (runId: RunId, code: string, message: string): RequestError =>
  new RequestError(-32603, message, { code, runId });

/** The error for an accepted prompt whose end cannot be reported here. The hint says not to send it again. */
export function endUnknown(thrown: unknown, runId: RunId | undefined): RequestError {
  if (runId === undefined || thrown instanceof RequestError) return rpcError(thrown);
  const { code, message } = toControlError(thrown);
  return new RequestError(CODES[code], message, { code, runId, hint: ACCEPTED, retryable: false });
}

const ACCEPTED = "It was accepted and is not lost: do not send it again. Load the session later to see how it ended.";

export const requestCancelled = (runId: RunId): RequestError =>
  new RequestError(-32800, "The prompt was cancelled before its turn came.", { runId });
