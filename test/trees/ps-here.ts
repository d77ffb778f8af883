// Processes as a Mac would see them, on this machine: with `ps` alone, without /proc.
import { systemClock } from "../../src/engine/system-clock.ts";
import { findProgram } from "../../src/process/program.ts";
import { PsSight } from "../../src/process/ps-sight.ts";

export const psHere = (): PsSight =>
  new PsSight({ clock: systemClock, dialect: "linux", program: findProgram("ps") ?? "ps" });
