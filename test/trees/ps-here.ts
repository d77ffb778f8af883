// The process table of a Mac, on this machine: `ps` alone, without /proc.

import { findProgram } from "../../src/process/launch/program-lookup.ts";
import { PsProcessTable } from "../../src/process/tree/ps-process-table.ts";
import { systemClock } from "../../src/system/system-clock.ts";

export const psHere = (): PsProcessTable =>
  new PsProcessTable({ clock: systemClock, dialect: "linux", program: findProgram("ps") ?? "ps" });
