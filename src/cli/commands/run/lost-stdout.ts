// A run whose output cannot be written any more.
import { stdoutLoss } from "../../shared/stdout-errors.ts";

interface LossHandlers {
  /** Its reader has left (`belay run … | head`). */
  readonly unread: () => void;
  /** Its terminal was closed. */
  readonly hangup: () => void;
}

/**
 * Listens instead of the listeners that would leave with 0: that would say that the run has completed. Any other error
 * is theirs. The answer gives them back their place.
 */
export function onLostStdout({ unread, hangup }: LossHandlers): () => void {
  const { stdout } = process;
  const others = stdout.listeners("error") as ((error: Error) => void)[];
  const listen = (error: NodeJS.ErrnoException): void => {
    const loss = stdoutLoss(error);
    if (loss === "unread") unread();
    else if (loss === "hangup") hangup();
    else for (const other of others) other.call(stdout, error);
  };
  stdout.removeAllListeners("error").on("error", listen);
  return () => {
    stdout.removeListener("error", listen);
    for (const other of others) stdout.on("error", other);
  };
}
