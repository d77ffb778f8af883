// SIGINT and SIGTERM: the first shuts down gracefully, the second ends the process at once.
//
// Invariants
// 1. One handler per signal and process, however many Belays are open, and none once they are closed.
// 2. The process is not ended before all of them have closed.
// 3. If the program handles the signal too, Belay does not end the process: the program's handler may still be
//    running.
import { constants } from "node:os";
import type { Belay } from "./belay.ts";

type CloseOptions = Parameters<Belay["close"]>[0];

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/** The Belays that a signal closes, with their options. */
const open = new Map<Belay, CloseOptions>();
let isClosing = false;

/**
 * Closes `belay` when the process receives SIGINT or SIGTERM. When all Belays registered here have closed, the
 * process ends by that signal, unless the program handles the signal itself. A second signal ends it at once. The
 * handlers are removed when `belay` is closed, or by calling the returned function.
 */
export function closeOnSignals(belay: Belay, options: CloseOptions = {}): () => void {
  // Prepended, so that a handler that the program added with `once` is still counted when the signal arrives.
  if (open.size === 0 && !isClosing) for (const signal of SIGNALS) process.prependListener(signal, onSignal);
  open.set(belay, options);
  const remove = (): void => forget(belay);
  void belay.closed.then(remove);
  return remove;
}

function forget(belay: Belay): void {
  if (open.delete(belay) && open.size === 0 && !isClosing) removeHandlers();
}

function removeHandlers(): void {
  for (const signal of SIGNALS) process.removeListener(signal, onSignal);
}

function onSignal(signal: NodeJS.Signals): void {
  if (!isClosing) void closeAll(signal, process.listenerCount(signal) > 1);
  else if (process.listenerCount(signal) > 1) process.exit(128 + constants.signals[signal]);
  else endBy(signal);
}

/** `isHandled`: the program handles the signal and ends the process. */
async function closeAll(signal: NodeJS.Signals, isHandled: boolean): Promise<void> {
  isClosing = true;
  // Includes Belays opened meanwhile. Work that is unfinished at the limit is recovered at the next start.
  while (open.size > 0) {
    const closing = [...open];
    await Promise.allSettled(closing.map(([belay, options]) => belay.close(options)));
    for (const [belay] of closing) open.delete(belay);
  }
  isClosing = false;
  if (isHandled) removeHandlers();
  else endBy(signal);
}

/** Ends by the signal itself, so that a shell or a supervisor sees it. */
function endBy(signal: NodeJS.Signals): void {
  removeHandlers();
  process.kill(process.pid, signal);
}
