// Output that could not be written: a full disk, a reader that has left, or a terminal that is gone.
import { ControlError } from "../../core/errors.ts";

/**
 * `unread`: its reader has stopped reading (`belay demo | head`), which is no error. `hangup`: its terminal was closed,
 * so that a SIGHUP is on its way.
 */
export type StdoutLoss = "unread" | "hangup" | ControlError;

export function stdoutLoss(
  { code = "", message }: NodeJS.ErrnoException,
  isTerminal = process.stdout.isTTY,
): StdoutLoss {
  if (code === "EPIPE") return "unread";
  if (code === "EIO" && isTerminal) return "hangup";
  const full = code === "ENOSPC" || code === "EDQUOT";
  return new ControlError(full ? "store_full" : "internal", `What this says cannot be written: ${message}.`, {
    hint: "Its words are lost, and nothing else. Send stdout to another place.",
  });
}
