// The signals that end a program. What is asked for first is done in order; whoever asks again is not kept waiting.
import { EXIT_SIGNAL, type StopSignal } from "./exit-code.ts";

const SIGNALS = Object.keys(EXIT_SIGNAL) as readonly StopSignal[];

/**
 * Tells of each signal. Once the answer was `leaving`, the next one ends the program at once; what must not be left
 * behind is removed at its exit. The answer takes the handlers back.
 */
export function onStopSignals(hear: (signal: StopSignal) => "leaving" | "staying"): () => void {
  let leaving = false;
  const onSignal = (signal: StopSignal): void => {
    if (leaving) process.exit(EXIT_SIGNAL[signal]);
    try {
      leaving = hear(signal) === "leaving";
    } catch {
      // Whatever is wrong, the signal ends the program as the shell expects it.
      process.exit(EXIT_SIGNAL[signal]);
    }
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return () => {
    for (const signal of SIGNALS) process.removeListener(signal, onSignal);
  };
}
