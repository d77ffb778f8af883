// Handles errors of stdout while `belay run` follows a run.
import { stdoutLoss } from "../../shared/stdout-errors.ts";

interface LossHandlers {
  /** The reader closed the pipe (`belay run … | head`). */
  readonly unread: () => void;
  /** The terminal was closed. */
  readonly hangup: () => void;
}

/**
 * Replaces the error listeners of stdout, which exit the program: that would cut off a run in this program, and exit
 * with 0 for a run on a server. Output lost to a full disk is reported when the program exits. Returns a function that
 * restores the listeners.
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
