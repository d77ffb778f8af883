// From opening a store with a million events and a thousand cut-off runs until every one of them is under way again.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openBelay } from "../../src/index.ts";
import { openSqliteStore } from "../../src/store/sqlite/sqlite-store.ts";
import { round } from "../report.ts";
import { writeHistory } from "./history.ts";

const SESSIONS = 1_000;
const folder = mkdtempSync(join(tmpdir(), "belay-bench-"));
const file = join(folder, "start.db");
const store = await openSqliteStore({ file });
for (let at = 0; at < SESSIONS; at += 50) {
  await Promise.all(Array.from({ length: 50 }, (_, index) => writeHistory(store, `ses_${at + index}`, 1_000, "open")));
}
await store.close();

let begun = 0;
let allBegun: () => void = () => {};
const everyone = new Promise<void>((resolve) => {
  allBegun = resolve;
});
const from = performance.now();
const belay = await openBelay({
  store: file,
  agent: () => {
    begun += 1;
    if (begun === SESSIONS) allBegun();
    return "done";
  },
});
const opened = performance.now() - from;
await everyone;
const took = performance.now() - from;
await belay.close();
rmSync(folder, { recursive: true });
console.log(
  JSON.stringify({
    ours: { openMs: round(opened, 0), startMs: round(took, 0), openRuns: begun },
    ratios: { startVs2s: round(took / 2000) },
  }),
);
