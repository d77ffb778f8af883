// Finds ids by prefix: one range scan of each table's own index, however many rows the table has.
import type { IdsAsked, IdsFound } from "../../core/model/rows.ts";
import type { Database } from "./database.ts";

/**
 * Rows of one table that are read for one tenant. Ids of runs and calls do not contain their tenant, so rows of other
 * tenants are read and dropped. A prefix that matches this many ids is too short to be useful.
 */
const TENANT_ROWS_MAX = 1_000;

/** Sorts after every character an id can have. */
const LAST = "\u{10FFFF}";

export function idQueries(database: Database): (query: IdsAsked) => IdsFound {
  const range = (table: string, tenant = `(SELECT tenant FROM session WHERE number = ${table}.session)`) =>
    database.prepare(`SELECT id, ${tenant} AS tenant FROM ${table} WHERE id >= ? AND id < ? ORDER BY id LIMIT ?`);
  // In the order of their ids. Ids of sessions and processes begin with their tenant.
  const tables = [
    { rows: range("call") },
    { rows: range("process"), own: "proc_" },
    { rows: range("run") },
    { rows: range("session", "tenant"), own: "ses_" },
  ];

  return ({ prefix, limit, tenant }) => {
    const rowsMax = tenant === undefined ? limit + 1 : Math.max(limit + 1, TENANT_ROWS_MAX);
    const ids: string[] = [];
    let complete = true;
    for (const { rows, own } of tables) {
      const from = own === undefined || tenant === undefined ? prefix : longer(prefix, `${own}${tenant}.`);
      if (from === undefined) continue;
      const found = rows.all(from, from + LAST, rowsMax);
      if (found.length === rowsMax) complete = false;
      for (const row of found) if (tenant === undefined || row.tenant === tenant) ids.push(String(row.id));
    }
    return { ids: ids.slice(0, limit), complete: complete && ids.length <= limit };
  };
}

/** The prefix that satisfies both. Undefined: no id can have both. */
function longer(one: string, other: string): string | undefined {
  if (one.startsWith(other)) return one;
  return other.startsWith(one) ? other : undefined;
}
