// Processes as /proc shows them: at once, and exactly.
import { readdirSync } from "node:fs";
import { hasOpen, openFile } from "./open-files.ts";
import { bootIdOf, childrenOf, identityOf, isStill, namespaceOf, PROC, statOf } from "./proc.ts";
import type { ProcessTable } from "./process-table.ts";
import { PROCESS_SCANNER } from "./scan-thread.ts";
import { REAL } from "./signal.ts";

/** `root`: where the table is. Signals always go to the real processes. */
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
    listProcesses: (meet) => PROCESS_SCANNER.look(root, meet),
    means: () => REAL,
    openFile,
    hasOpen,
  };
}

export const PROC_PROCESS_TABLE: ProcessTable = procProcessTable();
