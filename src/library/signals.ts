// SIGINT and SIGTERM: the first shuts down in order, the second leaves at once.
import { constants } from "node:os";
import type { Belay } from "./belay.ts";

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/**
 * Closes `belay` when the process is asked to end, and then lets it end the way the signal would have ended it.
 * A second signal does not wait. The answer takes the handlers back.
 */
export function closeOnSignals(belay: Belay, options: Parameters<Belay["close"]>[0] = {}): () => void {
  let asked = false;
  const takeBack = (): void => {
    for (const signal of SIGNALS) process.removeListener(signal, onSignal);
  };
  const onSignal = (signal: NodeJS.Signals): void => {
    const leave = (): void => {
      takeBack();
      // Died of the signal, as a shell wants to see it; where others listen too, it would not kill, so we leave.
      if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
      else process.exit(128 + constants.signals[signal]);
    };
    if (asked) {
      leave();
      return;
    }
    asked = true;
    // Closing cannot be refused, and whatever it could not finish is recovered at the next start.
    void belay.close(options).finally(leave);
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return takeBack;
}
