// The process table from /proc: always current and exact.
import { readdirSync, readlinkSync } from "node:fs";
import { bootIdOf, childrenOf, identityOf, isStill, namespaceOf, PROC, statOf } from "./proc.ts";
import type { ProcessTable } from "./process-table.ts";
import { PROCESS_SCANNER } from "./scan-thread.ts";
import { REAL } from "./signal.ts";

/** `root`: the mount point. Signals always go to the real processes. */
export function procProcessTable(root: string = PROC): ProcessTable {
  return {
    kind: "proc",
    bootId: () => bootIdOf(root),
    namespace: () => namespaceOf(root),
    identityOf: (pid) => identityOf(pid, root),
    isStill: (identity) => isStill(identity, root),
    statOf: (pid) => statOf(pid, root),
    childrenOf: (pid) => childrenOf(pid, root),
    pids: () => readdirSync(root).flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : [])),
    listProcesses: (meet) => PROCESS_SCANNER.scan(root, meet),
    means: () => REAL,
    openFile,
    hasOpen,
  };
}

export const PROC_PROCESS_TABLE: ProcessTable = procProcessTable();

/**
 * The name of an open file, as /proc shows it: equal for every process that holds the same pipe. Undefined: it is not
 * open, the process is gone, or we lack permission.
 */
export function openFile(pid: number, fd: number | string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`);
  } catch {
    return undefined;
  }
}

/** Whether it has one of these open. False if we lack permission to see. */
function hasOpen(pid: number, files: readonly string[]): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => files.includes(openFile(pid, fd) ?? ""));
  } catch {
    return false;
  }
}
