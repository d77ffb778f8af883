// The thread that watches the event loop of the main thread. While that is blocked it cannot report anything, so this
// thread writes one line to standard error.
import { writeSync } from "node:fs";
import { workerData } from "node:worker_threads";
import { LOOP_BLOCKED_MS } from "../core/limits.ts";
import type { WatchData } from "./loop-watch.ts";
import { BEAT_MS, WatchMemory } from "./loop-watch-memory.ts";

const { shared, form } = workerData as WatchData;
const memory = new WatchMemory(shared);

for (;;) {
  memory.untilLive();
  // Counted in checks of this thread, not by a clock: a suspended program is not a blocked one.
  let missed = 0;
  while (memory.missedBeat()) {
    missed += 1;
    if (missed * BEAT_MS !== LOOP_BLOCKED_MS) continue;
    memory.blocked = true;
    write(`The event loop has not turned for ${LOOP_BLOCKED_MS} ms, so nothing can be stopped: ${memory.names}`);
  }
}

function write(msg: string): void {
  const line = form === "json" ? JSON.stringify({ level: 50, time: Date.now(), msg }) : `belay: ${msg}`;
  try {
    writeSync(2, `${line}\n`);
  } catch {
    // Standard error is closed or full. The notice follows when the loop turns again.
  }
}
