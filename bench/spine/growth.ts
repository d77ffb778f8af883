// The cost of a run in a session with a million events over one with a thousand.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Belay, openBelay } from "../../src/index.ts";
import { openSqliteStore } from "../../src/store/sqlite/sqlite-store.ts";
import { ascending, percentile, round } from "../report.ts";
import { writeHistory } from "./history.ts";

const ROUNDS = 600;
const folder = mkdtempSync(join(tmpdir(), "belay-bench-"));
const file = join(folder, "growth.db");
const store = await openSqliteStore({ file });
await writeHistory(store, "ses_small", 1_000, "closed");
await writeHistory(store, "ses_large", 1_000_000, "closed");
await store.close();

async function measure(belay: Belay, id: string): Promise<number> {
  const session = belay.session(id);
  const from = performance.now();
  const run = session.prompt("Do the next thing.");
  await run.accepted;
  const took = performance.now() - from;
  await run.outcome;
  return took;
}

const belay = await openBelay({ store: file, agent: () => "done" });
const small: number[] = [];
const large: number[] = [];
for (let index = 0; index < ROUNDS; index += 1) {
  const [a, b] = [await measure(belay, "ses_small"), await measure(belay, "ses_large")];
  if (index < 100) continue;
  small.push(a * 1000);
  large.push(b * 1000);
}
await belay.close();
rmSync(folder, { recursive: true });
const [s, l] = [percentile(ascending(small), 0.5), percentile(ascending(large), 0.5)];
console.log(
  JSON.stringify({
    ours: { commitUsAt1k: round(s), commitUsAt1M: round(l) },
    ratios: { commitAt1MOver1k: round(l / s) },
  }),
);
