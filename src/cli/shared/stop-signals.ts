// The signals that end a program. The first one shuts it down gracefully; a second one forces it.
import { EXIT_SIGNAL, type StopSignal } from "./exit-code.ts";

const SIGNALS = Object.keys(EXIT_SIGNAL) as readonly StopSignal[];

/**
 * Calls `handle` for each signal. Once it has returned `leaving`, the next signal exits at once; what must be removed
 * then is removed by handlers of `exit`. Returns a function that unsubscribes.
 */
export function onStopSignals(handle: (signal: StopSignal) => "leaving" | "staying"): () => void {
  let leaving = false;
  const onSignal = (signal: StopSignal): void => {
    if (leaving) process.exit(EXIT_SIGNAL[signal]);
    try {
      leaving = handle(signal) === "leaving";
    } catch {
      // Even if the handler fails, the signal ends the program as the shell expects.
      process.exit(EXIT_SIGNAL[signal]);
    }
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return () => {
    for (const signal of SIGNALS) process.removeListener(signal, onSignal);
  };
}
