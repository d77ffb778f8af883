// Ctrl-C: what goes on is ended and removed, and the shell hears by which signal it was stopped.
import { constants } from "node:os";
import { say } from "../run/suite.ts";

const SIGNALS = ["SIGHUP", "SIGINT", "SIGTERM"] as const;

/** Aborted by the first signal. The next one leaves at once; a terminal and npm send it each on its own. */
export function stopOnSignals(): AbortSignal {
  const stop = new AbortController();
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      const code = 128 + constants.signals[signal];
      if (stop.signal.aborted) process.exit(code);
      say(`stopped by ${signal}`);
      stop.abort(new Stopped(code));
    });
  }
  return stop.signal;
}

class Stopped extends Error {
  readonly code: number;

  constructor(code: number) {
    super("It was stopped by a signal.");
    this.code = code;
  }
}

/** Ends the program if this is why something was not brought to its end. */
export function leaveIfStopped(thrown: unknown): never {
  if (thrown instanceof Stopped) process.exit(thrown.code);
  throw thrown;
}
