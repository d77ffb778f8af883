// Accept to outcome on SQLite FULL with 32 sessions at once, against raw group-committed inserts of the same bytes.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openBelay } from "../../src/index.ts";
import { ascending, percentile, round } from "../report.ts";

const CONCURRENCY = 32;
const RUNS = 12_000;
const PROMPT = "Please summarise the last three messages in one sentence.";
const ANSWER = "Here is the summary you asked for, in one sentence, as briefly as it can be put.";

const folder = mkdtempSync(join(tmpdir(), "belay-bench-"));

async function ours(
  file: string,
  concurrency: number,
  runs: number,
): Promise<{ perSecond: number; p50: number; p99: number }> {
  const belay = await openBelay({ store: file, agent: () => ANSWER });
  const latencies: number[] = [];
  let left = runs;
  const lane = async (): Promise<void> => {
    const session = await belay.createSession();
    while (left-- > 0) {
      const from = performance.now();
      const outcome = await session.prompt(PROMPT).outcome;
      if (outcome.kind !== "completed") throw new Error(outcome.kind);
      latencies.push(performance.now() - from);
    }
  };
  const from = performance.now();
  await Promise.all(Array.from({ length: concurrency }, lane));
  const seconds = (performance.now() - from) / 1000;
  await belay.close();
  const sorted = ascending(latencies);
  return { perSecond: runs / seconds, p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99) };
}

/** What our runs wrote, row for row, read back from our own file. */
function rowsWritten(file: string): readonly string[] {
  const db = new DatabaseSync(file, { readOnly: true });
  const rows = db.prepare("SELECT data FROM event").all();
  db.close();
  return rows.map((row) => String(row.data));
}

/** The floor: the same bytes into one table, FULL, as many rows a commit as there are runs at once. */
function raw(file: string, rows: readonly string[]): number {
  const db = new DatabaseSync(file);
  db.exec(
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE row " +
      "(session TEXT, seq INTEGER, data TEXT, PRIMARY KEY (session, seq)) WITHOUT ROWID",
  );
  const insert = db.prepare("INSERT INTO row VALUES (?, ?, ?)");
  const from = performance.now();
  for (let at = 0; at < rows.length; at += CONCURRENCY) {
    db.exec("BEGIN IMMEDIATE");
    for (let index = at; index < Math.min(rows.length, at + CONCURRENCY); index += 1) {
      insert.run(`ses_${index % CONCURRENCY}`, index, rows[index] ?? "");
    }
    db.exec("COMMIT");
  }
  const seconds = (performance.now() - from) / 1000;
  db.close();
  return seconds;
}

await ours(join(folder, "warm.db"), CONCURRENCY, 2_000);
// Alternated, so that a slow minute of the disk hits both.
const tries: { perSecond: number; p50: number; p99: number; floorRunsPerSecond: number; bytesPerRun: number }[] = [];
for (let round = 0; round < 3; round += 1) {
  const file = join(folder, `ours-${round}.db`);
  const measured = await ours(file, CONCURRENCY, RUNS);
  const rows = rowsWritten(file);
  const seconds = raw(join(folder, `raw-${round}.db`), rows);
  tries.push({
    ...measured,
    floorRunsPerSecond: RUNS / seconds,
    bytesPerRun: rows.reduce((sum, row) => sum + row.length, 0) / RUNS,
  });
}
const single = await ours(join(folder, "single.db"), 1, 1_500);
rmSync(folder, { recursive: true });
const median = [...tries].sort((a, b) => a.floorRunsPerSecond / a.perSecond - b.floorRunsPerSecond / b.perSecond)[1];
if (median === undefined) throw new Error("no tries");
console.log(
  JSON.stringify({
    ours: {
      runsPerSecondC32: round(median.perSecond, 0),
      runP50MsC32: round(median.p50),
      runP99MsC32: round(median.p99),
      runsPerSecondC1: round(single.perSecond, 0),
      bytesPerRun: round(median.bytesPerRun, 0),
    },
    floor: { rawRunsPerSecondC32: round(median.floorRunsPerSecond, 0) },
    ratios: { commitVsRawSqlite: round(median.floorRunsPerSecond / median.perSecond) },
  }),
);
