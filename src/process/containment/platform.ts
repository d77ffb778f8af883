// The platforms on which processes can be contained, and their process tables.
import type { Clock } from "../../ports/clock.ts";
import { findProgram } from "../launch/program-lookup.ts";
import { PROC_PROCESS_TABLE } from "../tree/proc-process-table.ts";
import type { ProcessTable } from "../tree/process-table.ts";
import { PsProcessTable } from "../tree/ps-process-table.ts";

/** Undefined: processes cannot be contained there. */
export function processTableOn(platform: NodeJS.Platform, clock: Clock): ProcessTable | undefined {
  if (platform === "linux") return PROC_PROCESS_TABLE;
  const program = platform === "darwin" ? findProgram("ps") : undefined;
  return program === undefined ? undefined : new PsProcessTable({ clock, program, dialect: "macos" });
}

/** Advice for platforms where processes cannot be contained, or not reliably enough. */
export const elsewhere = (platform: NodeJS.Platform): string =>
  platform === "win32"
    ? "Native Windows is not supported yet: use WSL2."
    : "Run the server on Linux: in a container, or in a virtual machine.";

/** Remarks on a platform as a whole. */
export function notesOnPlatform(platform: NodeJS.Platform): readonly string[] {
  switch (platform) {
    case "linux":
      return [];
    case "darwin":
      return [
        "macOS offers the last tier only: group. Belay's own tests run it on Linux, with ps in place of /proc; it " +
          "was never tried on a Mac. Until its test on this machine has passed, take it for untested.",
        "Seatbelt is not used: what a process may touch is not restricted. There are no terminals.",
        `For a surer tier: ${elsewhere(platform)}`,
      ];
    case "win32":
      return [
        "Native Windows is not supported yet: no process is started there, and none of this was tried on it. Use WSL2.",
      ];
    default:
      return [`Processes are held on Linux, and experimentally on macOS. ${elsewhere(platform)}`];
  }
}
