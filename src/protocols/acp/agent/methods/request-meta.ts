// Belay's metadata on requests: the run that is meant, and the reason of an abort.
import { RequestError } from "@agentclientprotocol/sdk";

/** `_meta.belay.runId`: a late cancel that names its run touches no other. */
export function runNamed(meta: unknown): string | undefined {
  const belay = fieldOf(meta, "belay");
  const runId = fieldOf(belay, "runId");
  return typeof runId === "string" && runId !== "" ? runId : undefined; // @fault late-cancel-hits-the-next
}

/**
 * Calls back when the client cancels the request. The same signal aborts when a connection closes, which does not
 * count.
 */
export function onWithdrawal(signal: AbortSignal, call: () => void): void {
  const onAbort = (): void => {
    if (signal.reason instanceof RequestError && signal.reason.code === -32800) call(); // @fault leaving-cancels
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
}

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null && name in value ? (value as Record<string, unknown>)[name] : undefined;
