// Node's SQLite. All code that opens a database imports it from here.
//
// Some versions print an experimental warning when it is loaded. The functions used here are tested with each
// supported version, so that warning is suppressed.
import type { DatabaseSync as NodeDatabase } from "node:sqlite";
import { ControlError } from "../../core/errors.ts";

type NodeSqlite = typeof import("node:sqlite");

export type DatabaseSync = NodeDatabase;
export const { DatabaseSync }: Pick<NodeSqlite, "DatabaseSync"> = load();

function load(): NodeSqlite {
  const { emitWarning } = process;
  process.emitWarning = (...warning: readonly unknown[]): void => {
    if (!isExperimental(warning)) Reflect.apply(emitWarning, process, warning);
  };
  let found: NodeSqlite | undefined;
  try {
    found = process.getBuiltinModule?.("node:sqlite");
  } finally {
    process.emitWarning = emitWarning;
  }
  if (found === undefined) {
    throw new ControlError("unavailable", "This runtime has no SQLite that the store's file could be kept with.", {
      hint: 'Belay needs Node.js 22.13 or newer. Without a file, open it with store: ":memory:".',
    });
  }
  return found;
}

function isExperimental([warning, kind]: readonly unknown[]): boolean {
  return String(warning).includes("SQLite") && kind === "ExperimentalWarning";
}
