// The only place where a failure meets JSON-RPC as this protocol speaks it. `http/routes/status-code.ts` is its
// sibling.
import { RequestError } from "@agentclientprotocol/sdk";
import { ADVICE, type ControlCode, ControlError, toControlError } from "../../../core/errors.ts";
import type { RunId } from "../../../core/model/ids.ts";

/** -32000, -32002 and -32800 are the protocol's own; the rest is where JSON-RPC leaves room for servers. */
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

/** The word for it that the rest of Belay uses. */
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

/** A run that failed, or of which nobody knows: the one way the protocol has to say so. */
export const runFailed = (runId: RunId, code: string, message: string): RequestError =>
  new RequestError(-32603, message, { code, runId });

/** A prompt that was accepted, and whose end cannot be told here. Whoever sends it again has it done twice. */
export function notTold(thrown: unknown, runId: RunId | undefined): RequestError {
  if (runId === undefined || thrown instanceof RequestError) return rpcError(thrown);
  const { code, message } = toControlError(thrown);
  return new RequestError(CODES[code], message, { code, runId, hint: ACCEPTED, retryable: false });
}

const ACCEPTED = "It was accepted and is not lost: do not send it again. Load the session later to hear how it ended.";

export const requestCancelled = (runId: RunId): RequestError =>
  new RequestError(-32800, "The prompt was cancelled before its turn came.", { runId });
