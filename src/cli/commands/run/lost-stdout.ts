// A run whose output cannot be written any more.
import { stdoutLoss } from "../../shared/stdout-errors.ts";

interface LossHandlers {
  /** Its reader has left (`belay run … | head`). */
  readonly unread: () => void;
  /** Its terminal was closed. */
  readonly hangup: () => void;
}

/**
 * Listens instead of the listeners that end the program: that would cut off a run that goes on in it, and say of others
 * that they have completed. Words that a full disk has not taken are reported when the program ends. The answer gives
 * the listeners back their place.
 */
export function onLostStdout({ unread, hangup }: LossHandlers): () => void {
  const { stdout } = process;
  const others = stdout.listeners("error") as ((error: Error) => void)[];
  const listen = (error: NodeJS.ErrnoException): void => {
    const loss = stdoutLoss(error);
    if (loss === "unread") unread();
    else if (loss === "hangup") hangup();
  };
  stdout.removeAllListeners("error").on("error", listen);
  return () => {
    stdout.removeListener("error", listen);
    for (const other of others) stdout.on("error", other);
  };
}
