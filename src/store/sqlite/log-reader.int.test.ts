// SQLite's plans for our queries: no query may take longer because a log has become long.
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import type { Database } from "./database.ts";
import { migrate } from "./file/migrate.ts";
import { queries } from "./log-reader.ts";
import { MIGRATIONS } from "./schema.ts";
import { Statements } from "./statements.ts";

/** One in-memory database for all tests. */
const database = new DatabaseSync(":memory:");
migrate(database, MIGRATIONS);

describe("the plan of a query", () => {
  const asked = prepared();

  it.each(asked)("neither scans a table nor sorts: %s", (sql) => {
    const plan = planOf(sql);
    expect(plan.filter((step) => /TEMP B-TREE|AUTOMATIC/.test(step))).toEqual([]);
    expect(plan.filter((step) => /^SCAN (run|call|process|event|session|snapshot)\b/.test(step))).toEqual([]);
  });

  it("uses the partial indexes for runs and processes without an outcome", () => {
    const found = asked.filter((sql) => sql.includes("outcome IS NULL"));
    expect(found).toHaveLength(2);
    for (const sql of found) {
      const plan = planOf(sql).join("\n");
      expect(plan).toContain("SEARCH run USING INDEX run_without_outcome");
      expect(plan).toContain("SEARCH process USING INDEX process_without_outcome");
    }
  });
});

/** Every query that reader and writer prepare. */
function prepared(): readonly string[] {
  const texts: string[] = [];
  const listening: Database = {
    exec: (sql) => database.exec(sql),
    prepare: (sql) => {
      texts.push(sql);
      return database.prepare(sql);
    },
    close: () => undefined,
  };
  queries(listening);
  new Statements(listening);
  return texts.filter((sql) => /SELECT|UPDATE|DELETE/.test(sql));
}

function planOf(sql: string): readonly string[] {
  return database
    .prepare(`EXPLAIN QUERY PLAN ${sql}`)
    .all()
    .map(({ detail }) => String(detail));
}
