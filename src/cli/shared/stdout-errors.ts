// Errors of stdout: a full disk, a reader that has closed the pipe, or a closed terminal.
import { ControlError } from "../../core/errors.ts";

/**
 * `unread`: the reader closed the pipe (`belay demo | head`), which is not an error. `hangup`: the terminal was closed,
 * so that a SIGHUP follows.
 */
export type StdoutLoss = "unread" | "hangup" | ControlError;

export function stdoutLoss(
  { code = "", message }: NodeJS.ErrnoException,
  isTerminal = process.stdout.isTTY,
): StdoutLoss {
  if (code === "EPIPE") return "unread";
  if (code === "EIO" && isTerminal) return "hangup";
  const full = code === "ENOSPC" || code === "EDQUOT";
  return new ControlError(full ? "store_full" : "internal", `stdout cannot be written: ${message}.`, {
    hint: "Only this output is lost. Redirect stdout to another place.",
  });
}
