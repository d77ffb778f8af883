// `belay status`: prints the size of the store, the running work, and the resources of the process.

import type { RetentionStatus } from "../../../core/model/upkeep.ts";
import type { Status } from "../../../ports/explanation.ts";
import { systemClock } from "../../../system/system-clock.ts";
import { withControl } from "../../shared/connect.ts";
import type { ConnectionOptions } from "../../shared/connection-options.ts";
import { EXIT_OK } from "../../shared/exit-code.ts";
import { ageOf } from "../../shared/format/age.ts";
import { count } from "../../shared/format/format-outcome.ts";
import { print } from "../../shared/terminal/terminal.ts";

export function runStatus(flags: ConnectionOptions & { readonly json?: true }): Promise<number> {
  return withControl(flags, async ({ control }) => {
    const status = await control.status();
    if (flags.json) print(JSON.stringify(status));
    else for (const line of statusLines(status, systemClock.now())) print(line);
    return EXIT_OK;
  });
}

export function statusLines(status: Status, now: number): readonly string[] {
  const { phase, startedAt, load, trouble, store, retention, resources } = status;
  const { memoryBytes, heapBytes, loopDelayMs, descriptors } = resources;
  const rows: readonly (readonly [string, string | undefined])[] = [
    ["state", trouble === undefined ? phase : `${phase}, nothing can be recorded: ${trouble}`],
    ["running since", ageOf(startedAt, now)],
    ["work", `${count(load.live, "run")} of ${load.max}, ${load.waiting} waiting, ${load.processes} processes`],
    ["store", store && `${sizeOf(store.bytes)}, of which ${sizeOf(store.freeBytes)} unused`],
    ["sessions", store && String(store.sessions)],
    ["events", store && String(store.events)],
    ["retention", retention && retentionLine(retention)],
    ["memory", `${sizeOf(memoryBytes)}, of which ${sizeOf(heapBytes)} JavaScript heap`],
    ["loop delay", loopDelayMs === undefined ? undefined : `${loopDelayMs} ms at worst in the last minute`],
    ["open files", descriptors === undefined ? undefined : String(descriptors)],
  ];
  return rows.flatMap(([name, value]) => (value === undefined ? [] : [`${name.padEnd(14)} ${value}`]));
}

function retentionLine({ removedEvents, deletedSessions, trouble }: RetentionStatus): string {
  const removed = `${count(removedEvents, "event")} and ${count(deletedSessions, "session")} removed since the start`;
  return trouble === undefined ? removed : `${removed}; removes nothing now: ${trouble}`;
}

/** Formats a size in the largest fitting unit. */
export function sizeOf(bytes: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let [value, unit] = [bytes, 0];
  while (value >= 1_000 && unit < units.length - 1) [value, unit] = [value / 1_000, unit + 1];
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}
