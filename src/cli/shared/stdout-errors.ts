// Output that could not be written: a full disk, or a terminal that is gone.
import { ControlError } from "../../core/errors.ts";

/** Undefined: whoever read it has stopped reading (`belay demo | head`). That is theirs to decide, and no error. */
export function stdoutError({ code = "", message }: NodeJS.ErrnoException): ControlError | undefined {
  if (code === "EPIPE") return undefined;
  const full = code === "ENOSPC" || code === "EDQUOT";
  return new ControlError(full ? "store_full" : "internal", `What this says cannot be written: ${message}.`, {
    hint: "Its words are lost, and nothing else. Send stdout to another place.",
  });
}
